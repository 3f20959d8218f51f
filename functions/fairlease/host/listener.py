"""The socket of the host: one for all its isolates, so that no connection ends with an isolate."""

from __future__ import annotations

import errno
import socket

from fairlease.errors import ConfigurationError

# Connections that the kernel keeps for us while one isolate follows another.
BACKLOG = 1024
_SILENT_SECONDS = 10


def listen(host: str, port: int) -> socket.socket:
    """Bound and listening. Raises `ConfigurationError`.

    Without SO_REUSEPORT: two hosts would share one port's pokes, and what waits for an isolate
    would be reset when that one closes a socket of its own.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family, backlog=BACKLOG)
    except (OSError, OverflowError) as error:
        raise ConfigurationError(_cannot_listen(host, port, error)) from None
    if hasattr(socket, "TCP_DEFER_ACCEPT"):
        # An isolate that stops closes connections on which nothing has come yet: it gets none such.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT, _SILENT_SECONDS)
    return listener


def url_of(listener: socket.socket) -> str:
    """A server of any address is reached at the loopback one."""
    host, port = listener.getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - compared
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _cannot_listen(host: str, port: int, error: Exception) -> str:
    if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
        return f"port {port} on {host} is taken; stop who has it, or give another with --port"
    return f"cannot listen on {host}:{port} ({error}); give another --host or --port"
