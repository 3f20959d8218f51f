from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from chart.helm import Helm, find_helm

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="session")
def helm(tmp_path_factory: pytest.TempPathFactory) -> Helm:
    pytest.importorskip("yaml", reason="PyYAML is missing: make chart")
    binary = find_helm()
    if binary is None:
        pytest.skip("helm is missing: make chart")
    folder: Path = tmp_path_factory.mktemp("helm")
    return Helm(binary, folder)
