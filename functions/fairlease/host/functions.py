"""Finds function folders and loads their code; the library knows none of them by name."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import os
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairlease.errors import ConfigurationError
from fairlease.host.manifest import FILE, NAME, Kind, Manifest, read_manifest
from fairlease.messages.registry import Worker
from fairlease.resources import functions_folder
from fairlease.settings import Settings, load_settings

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from types import ModuleType

VARIABLE = "FAIRLEASE_FUNCTIONS_DIR"
# In place of a folder: the functions that come with fairlease.
BUNDLED = "bundled"

TaskFunction = Callable[[Any], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class FunctionFolder:
    """One function: its manifest and where its code is."""

    path: Path
    manifest: Manifest

    @property
    def name(self) -> str:
        return self.manifest.name

    @property
    def kind(self) -> Kind:
        return self.manifest.kind

    @property
    def queues(self) -> tuple[str, ...]:
        return self.manifest.queues

    def settings(self, environ: Mapping[str, str]) -> Settings:
        """The knobs of this function, with its issues."""
        return load_settings(environ, self.manifest.knobs)

    def load_worker(self) -> Worker:
        """The `worker` of `handlers.py`. Raises `ConfigurationError` where there is none."""
        worker = getattr(self._module("handlers"), "worker", None)
        if not isinstance(worker, Worker):
            raise ConfigurationError(
                f"{self.path / 'handlers.py'}: has no `worker`; write worker = fairlease.Worker()"
            )
        if not worker.handlers:
            raise ConfigurationError(
                f"{self.path / 'handlers.py'}: registers no handler; add @worker.handler(...)"
            )
        return worker

    def load_task(self) -> TaskFunction:
        """The `run` of `task.py`. Raises `ConfigurationError` where there is none."""
        run = getattr(self._module("task"), "run", None)
        if not inspect.iscoroutinefunction(run) or not _takes_one(run):
            raise ConfigurationError(
                f"{self.path / 'task.py'}: has no task; write async def run(ctx)"
            )
        return run

    def check(self) -> None:
        """Load the code once, so that a mistake in it is seen at the start."""
        if self.kind is Kind.DRAIN:
            self.load_worker()
        else:
            self.load_task()

    def _module(self, part: str) -> ModuleType:
        file = self.path / f"{part}.py"
        if not file.is_file():
            raise ConfigurationError(f"{file}: is missing; a {self.kind.value} needs it")
        try:
            _register_package(self.name, self.path)
            return importlib.import_module(f"{self.name}.{part}")
        except (ConfigurationError, KeyboardInterrupt):
            raise
        except BaseException as error:  # a module may raise anything, SystemExit included
            said = " ".join(f"{type(error).__name__}: {error}".split())[:200]
            raise ConfigurationError(f"{file}: cannot be loaded: {said}") from error


def folders_from(given: Iterable[str], environ: Mapping[str, str]) -> list[Path]:
    """The folders of functions: those given, else those of `FAIRLEASE_FUNCTIONS_DIR`, else ours."""
    names = [name for name in given if name]
    names = names or [n for n in environ.get(VARIABLE, "").split(os.pathsep) if n.strip()]
    return [functions_folder() if n == BUNDLED else Path(n) for n in names or [BUNDLED]]


def discover(folders: Sequence[Path]) -> dict[str, FunctionFolder]:
    """Every function by name. Raises `ConfigurationError`, one line, for what cannot be served."""
    found: dict[str, FunctionFolder] = {}
    for folder in folders:
        for manifest_file in _manifests(folder):
            function = FunctionFolder(manifest_file.parent, read_manifest(manifest_file))
            if other := found.get(function.name):
                raise ConfigurationError(
                    f"{function.path}: a function of that name is in {other.path}; rename one"
                )
            found[function.name] = function
    if not found:
        places = ", ".join(str(folder) for folder in folders)
        raise ConfigurationError(
            f"no function in {places}; give a folder whose sub-folders have a {FILE}"
        )
    return found


def _manifests(folder: Path) -> list[Path]:
    try:
        entries = sorted(folder.iterdir())
    except OSError as error:
        raise ConfigurationError(
            f"{folder}: no folder of functions ({error.strerror}); give it with --functions "
            f"or {VARIABLE}"
        ) from None
    return [entry / FILE for entry in entries if (entry / FILE).is_file()]


def _takes_one(run: Callable[..., Any]) -> bool:
    parameters = list(inspect.signature(run).parameters.values())
    return len(parameters) == 1 and parameters[0].kind in (
        parameters[0].POSITIONAL_ONLY,
        parameters[0].POSITIONAL_OR_KEYWORD,
    )


def _register_package(name: str, path: Path) -> None:
    """Make `name` a package at `path`, so that its modules can import one another."""
    if not NAME.fullmatch(name):
        raise ConfigurationError(f"{name!r} is no function name")
    known = sys.modules.get(name)
    if known is not None and _is_at(known.__spec__, path):
        return
    spec = known.__spec__ if known is not None else importlib.util.find_spec(name)
    if spec is not None and not _is_function(spec):
        raise ConfigurationError(f"{path}: Python has a module {name!r} already; rename the folder")
    for module in [m for m in sys.modules if m == name or m.startswith(f"{name}.")]:
        del sys.modules[module]
    init = path / "__init__.py"
    package = (
        importlib.util.spec_from_file_location(name, init, submodule_search_locations=[str(path)])
        if init.is_file()
        else ModuleSpec(name, None, is_package=True)
    )
    assert package is not None  # noqa: S101 - the file exists
    package.submodule_search_locations = [str(path)]
    sys.modules[name] = importlib.util.module_from_spec(package)
    if package.loader is not None:
        package.loader.exec_module(sys.modules[name])


def _is_at(spec: ModuleSpec | None, path: Path) -> bool:
    places = list(spec.submodule_search_locations or ()) if spec else []
    return any(Path(place).resolve() == path.resolve() for place in places)


def _is_function(spec: ModuleSpec) -> bool:
    return any((Path(p) / FILE).is_file() for p in spec.submodule_search_locations or ())
