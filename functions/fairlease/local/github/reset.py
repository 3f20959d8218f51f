"""A connection that the peer resets: RST instead of an answer, as a crashed proxy leaves it.

The server would end a connection in order (FIN), which a client reads as "closed", another error.
"""

from __future__ import annotations

import contextlib
import ctypes
import socket
import struct
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_DESCRIPTORS = Path("/dev/fd")
# Long enough for any address family's sockaddr.
_ADDRESS_BYTES = 128


def reset_connection(client: tuple[str, int]) -> bool:
    """Reset the connection of this process to `client`; False where there is none (any more)."""
    for found in _connections():
        with found:
            if found.getpeername()[:2] == client:
                _abort(found)
                return True
    return False


def _abort(connection: socket.socket) -> None:
    """The descriptor stays the server's, who learns of the end when it uses it next.

    Unsent data is dropped at the close (SO_LINGER 0). But the close is the server's, after its FIN;
    so Linux is told to dissolve the association now (`connect` to AF_UNSPEC), which sends the RST.
    """
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    nowhere = ctypes.create_string_buffer(_ADDRESS_BYTES)
    ctypes.CDLL(None).connect(connection.fileno(), nowhere, _ADDRESS_BYTES)


def _connections() -> Iterator[socket.socket]:
    """Of this process, each as a copy of its descriptor."""
    for descriptor in list(_DESCRIPTORS.iterdir()):
        with contextlib.suppress(OSError):
            copy = socket.fromfd(int(descriptor.name), socket.AF_INET, socket.SOCK_STREAM)
            try:
                copy.getpeername()
            except OSError:
                copy.close()
                raise
            yield copy
