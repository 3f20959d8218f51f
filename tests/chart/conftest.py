from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from chart.helm import Helm, find_helm

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="session")
def helm(tmp_path_factory: pytest.TempPathFactory) -> Helm:
    binary = find_helm()
    if binary is None:
        pytest.skip("helm is not on PATH, and the archive has none for this machine")
    folder: Path = tmp_path_factory.mktemp("helm")
    return Helm(binary, folder)
