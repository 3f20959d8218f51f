"""Every error that fairlease raises; a branch of the tree is a way to react.

FairleaseError
|-- ConfigurationError     a person must change something before it can work
|-- InvalidInput           refused before the wire; the message names the path and the remedy
`-- RpcError               the database, or the way to it, did not do what was asked
    |-- TransientError     the same call may succeed later
    |-- FunctionMissing    this database does not know the function or its arguments: degrade
    |-- CallRefused        the function looked at its arguments and refused them: permanent
    |-- Unauthorized       the key is wrong, expired or lacks the grant
    `-- UnexpectedAnswer   anything else
"""

from __future__ import annotations

# What a log line, an event or an exception may carry of an answer's body, in characters.
BODY_LIMIT = 200


class FairleaseError(Exception):
    """Base of all; `exit_code` is what the command line ends with."""

    exit_code = 1


class ConfigurationError(FairleaseError):
    """A required setting, file or service is missing or malformed; the message says which."""

    exit_code = 2


class InvalidInput(FairleaseError, ValueError):
    """An argument or message that cannot be sent as it is."""

    exit_code = 2


class RpcError(FairleaseError):
    """A call that did not succeed. `code` is the SQLSTATE, PGRST code or HTTP status, as text."""

    exit_code = 3

    def __init__(self, message: str, *, code: str = "") -> None:
        super().__init__(message[:BODY_LIMIT])
        self.code = code


class TransientError(RpcError):
    """A lost connection, a bad gateway, a timeout, a busy server.

    `took_effect` is False where the call certainly did not reach the database, None where nobody
    knows: such a claim may have hidden messages until their visibility timeout.
    """

    def __init__(self, message: str, *, code: str = "", took_effect: bool | None = None) -> None:
        super().__init__(message, code=code)
        self.took_effect = took_effect


class FunctionMissing(RpcError):
    """PGRST202, PGRST203, 42883 or 42725: image and database disagree about a function."""


class CallRefused(RpcError):
    """P0001: the arguments are wrong for this database; retrying cannot help."""


class Unauthorized(RpcError):
    """401, 403, 42501 or a failed login."""


class UnexpectedAnswer(RpcError):
    """An error or a body that no other branch covers."""
