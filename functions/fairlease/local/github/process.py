"""The server as a child process: started, asked, and stopped by whoever needs one."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from typing import TYPE_CHECKING, Any, Self

from fairlease.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import TracebackType

STOP_SECONDS = 5.0


class GitHubServer:
    """`with GitHubServer("--org", "acme") as github:` serves on `github.url` until the end.

    `arguments` are those of `python -m fairlease.local.github`. The child ends when this process
    does, however it ends.
    """

    def __init__(self, *arguments: str) -> None:
        self.arguments = arguments
        self.url = ""
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> Self:
        """Return when the server answers; raise `ConfigurationError` if it does not start."""
        command = [sys.executable, "-m", "fairlease.local.github", "--until-stdin-closes"]
        self._process = subprocess.Popen(  # noqa: S603 - our own module
            [*command, *self.arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        line = self._process.stdout.readline() if self._process.stdout else ""
        if not line.startswith("READY "):
            self.stop()
            raise ConfigurationError("the local GitHub server did not start; see its message above")
        self.url = line.removeprefix("READY ").strip()
        return self

    def stop(self) -> None:
        """Idempotent; kills a server that does not end by itself."""
        process, self._process = self._process, None
        if process is None:
            return
        if process.stdin:
            process.stdin.close()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout:
            process.stdout.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def measure(self, *, reset: bool = False) -> dict[str, Any]:
        """What the server counted since its start or the last reset; see `meter.Meter.report`."""
        report: dict[str, Any] = self._call("DELETE" if reset else "GET", "/_measure")
        return report

    def put_org(self, login: str, **setup: Any) -> None:
        """Make an organization, or replace it; `setup` as in `control.OrgSetup`."""
        self._call("PUT", "/_control/orgs", {"login": login, **setup})

    def org(self, login: str) -> dict[str, Any]:
        """Everything that the server holds about an organization."""
        state: dict[str, Any] = self._call("GET", f"/_control/orgs/{login}")
        return state

    def add_faults(self, *faults: Mapping[str, Any]) -> None:
        """Failures to come; each as in `faults.Fault`."""
        self._call("POST", "/_control/faults", faults)

    def clear_faults(self) -> None:
        self._call("DELETE", "/_control/faults")

    def revoke_tokens(self) -> None:
        """Of every installation of the App."""
        self._call("DELETE", "/_control/tokens")

    def add_missing_users(self, logins: Sequence[str]) -> None:
        self._call("PUT", "/_control/missing-users", logins)

    def _call(self, method: str, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, method=method)  # noqa: S310
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=STOP_SECONDS) as answer:
            raw = answer.read()
        return json.loads(raw) if raw else None
