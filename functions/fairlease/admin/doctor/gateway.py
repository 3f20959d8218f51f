"""The way that runs take: is the schema exposed, is the key right, are the functions known?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlease.admin.doctor.checks import Check, State
from fairlease.errors import CallRefused, FunctionMissing, RpcError, TransientError, Unauthorized

if TYPE_CHECKING:
    from fairlease.rpc import Rpc

_TIMEOUT_SECONDS = 10.0
_NOT_EXPOSED = "PGRST106"
_HOLDER = "fairlease/doctor"


async def examine_gateway(rpc: Rpc, queue: str) -> Check:
    """Release a slot that nobody holds: it changes nothing and needs what every call needs."""
    try:
        await rpc.release_org_slot(queue, _HOLDER, timeout_seconds=_TIMEOUT_SECONDS)
    except CallRefused:
        pass  # it is about the queue, so the function was reached
    except RpcError as error:
        facts = {"code": error.code}
        return Check("exposure", State.PROBLEM, str(error), _remedy(error), facts)
    return Check("exposure", State.OK, "pgmq_public is exposed and our key opens it")


def _remedy(error: RpcError) -> str:
    if error.code == _NOT_EXPOSED:
        return (
            "expose pgmq_public: Project Settings, Data API, Exposed schemas; or `schemas` under "
            "[api] in supabase/config.toml"
        )
    match error:
        case FunctionMissing():
            return "run `fairlease migrate`; if it is up to date: notify pgrst, 'reload schema'"
        case Unauthorized():
            return "check SUPABASE_SECRET_KEY or SUPABASE_SERVICE_ROLE_KEY, and the grants"
        case TransientError():
            return "check SUPABASE_URL, and try again"
        case _:
            return "see what the gateway says"
