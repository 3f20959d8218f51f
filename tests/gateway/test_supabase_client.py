"""What the unchanged `supabase` client makes of our answers, line by line as recorded."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from postgrest import CountMethod
from supabase import AsyncClient, AsyncClientOptions

from fairlease.local.gateway import running_gateway
from gateway import recorded
from gateway.base_state import SECRET_KEY, keyed_config
from gateway.runner import Admin

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from gateway.base_state import BaseState

OUTCOMES = recorded.FOLDER / "supabase_py_outcomes.jsonl"
pytestmark = pytest.mark.skipif(not OUTCOMES.is_file(), reason="the recorded outcomes are not here")
LINES = OUTCOMES.read_text(encoding="utf-8").strip().split("\n") if OUTCOMES.is_file() else []

# How each line was called, where it was not a plain `rpc("f", {})`.
CALLS: dict[str, Callable[[AsyncClient], Any]] = {
    "rows_count": lambda client: client.rpc("f", {}, count=CountMethod.exact),
    "single_0": lambda client: client.rpc("f", {}).single(),
    "single_1": lambda client: client.rpc("f", {}).single(),
    "single_2": lambda client: client.rpc("f", {}).single(),
    "maybe_single_0": lambda client: client.rpc("f", {}).maybe_single(),
    "csv": lambda client: client.rpc("f", {}).csv(),
    "head_count": lambda client: client.rpc("f", {}, count=CountMethod.exact, head=True),
    "head_missing": lambda client: client.rpc("f", {}, head=True),
    "get": lambda client: client.rpc("f", {"a": 5}, get=True),
    "get_list": lambda client: client.rpc("f", {"a": [5, 6]}, get=True),
    "get_none": lambda client: client.rpc("f", {"a": None}, get=True),
    "get_dict": lambda client: client.rpc("f", {"a": {"x": 1}}, get=True),
    "missing": lambda client: client.rpc("f", {"a": 1}),
    "ambiguous": lambda client: client.rpc("f", {"a": 1}),
    "limit_order": lambda client: client.rpc("f", {}).order("a", desc=True).limit(1),
    "nan": lambda client: client.rpc("f", {"a": float("nan")}),
    "datetime": lambda client: client.rpc("f", {"a": datetime(2024, 1, 1, tzinfo=UTC)}),
    "bytes": lambda client: client.rpc("f", {"a": b"x"}),
}


@pytest.fixture(scope="module")
def url(base_state: BaseState) -> Iterator[str]:
    base_state.reset()
    with running_gateway(keyed_config(base_state)) as address:
        yield address


@pytest.fixture(scope="module")
def admin(url: str) -> Iterator[Admin]:
    routes = Admin(url)
    yield routes
    routes.close()


@pytest.fixture
async def client(url: str) -> AsyncIterator[AsyncClient]:
    async with httpx.AsyncClient() as http:
        options = AsyncClientOptions(schema="pgmq_public", httpx_client=http)
        yield await AsyncClient.create(url, SECRET_KEY, options)


async def outcome_of(call: Any) -> dict[str, Any]:
    try:
        response = await call.execute()
    except Exception as error:  # noqa: BLE001 - the outcome is what it is
        known = (
            {name: getattr(error, name) for name in ("code", "message", "details", "hint")}
            if type(error).__name__ == "APIError"
            else {}
        )
        name = type(error).__name__
        return {"raises": name if known else f"builtins.{name}", **known}
    if response is None:
        return {"returns": "None"}
    return {
        "returns": type(response).__name__,
        "data": repr(response.data),
        "count": repr(response.count),
    }


@pytest.mark.parametrize("line", LINES, ids=lambda line: json.loads(line)["name"])
async def test_outcome_is_the_recorded_one(
    line: str, client: AsyncClient, base_state: BaseState, admin: Admin
) -> None:
    case = json.loads(line)
    base_state.reset()
    base_state.session.execute(case["sql_setup"])
    admin.reload()
    call = CALLS.get(case["name"], lambda client: client.rpc("f", {}))(client)
    wanted = {name: value for name, value in case["outcome"].items() if name != "args"}
    assert await outcome_of(call) == wanted
