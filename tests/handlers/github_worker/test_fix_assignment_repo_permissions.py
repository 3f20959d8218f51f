from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from fairlease import ConfigurationError, Dead, NewMessage, Sent
from fairlease.messages.outgoing import check_message

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conftest import Tenant

REPOS = {f"HW1-{number:03}": {} for number in range(130)} | {
    "hw2-a": {},
    "hw1-z": {"archived": True},
}
pytestmark = pytest.mark.parametrize(
    "tenant", [{"repos": REPOS, "teams": {"staff": {}}}], indirect=True
)


class Outbox:
    """Sends nowhere; a key that it has seen is not taken again."""

    def __init__(self) -> None:
        self.by_key: dict[str | None, tuple[str, NewMessage]] = {}

    async def __call__(self, queue: str, messages: Sequence[NewMessage]) -> Sent:
        for message in messages:
            check_message(message)
            self.by_key.setdefault(message.key, (queue, message))
        return Sent(tuple(range(len(messages))))


@pytest.fixture
def outbox(tenant: Tenant) -> Outbox:
    tenant.sender = Outbox()
    return tenant.sender


async def test_one_message_for_each_repository_of_the_prefix(
    tenant: Tenant, outbox: Outbox
) -> None:
    ctx = tenant.context(queue="async_calls_low_priority")

    await tenant.deliver(
        "fix_assignment_repo_permissions", ctx=ctx, prefix="hw1-", teams={"Staff": "maintain"}
    )

    sent = list(outbox.by_key.values())
    assert {queue for queue, _ in sent} == {"async_calls_low_priority"}
    assert sorted(message.body["args"]["repository"] for _, message in sent) == [
        f"{tenant.login}/HW1-{number:03}" for number in range(130)
    ]
    assert {message.org for _, message in sent} == {tenant.login}


async def test_what_is_sent_is_what_the_handler_takes(tenant: Tenant, outbox: Outbox) -> None:
    await tenant.deliver(
        "fix_assignment_repo_permissions",
        repositories={"hw2-a": {"teams": {"staff": "admin"}}},
        teams={"Staff": "pull"},
    )
    ((_, message),) = outbox.by_key.values()

    await tenant.deliver(message.body["method"], **message.body["args"])

    assert tenant.state["teams"]["staff"]["repos"] == {"hw2-a": "admin"}


async def test_a_second_delivery_sends_the_same_keys_and_another_message_does_not(
    tenant: Tenant, outbox: Outbox
) -> None:
    args: dict[str, Any] = {"prefix": "hw2", "teams": {"staff": "pull"}}
    ctx = tenant.context()
    for _ in range(2):
        await tenant.deliver("fix_assignment_repo_permissions", ctx=ctx, **args)
    assert len(outbox.by_key) == 1

    await tenant.deliver("fix_assignment_repo_permissions", **args)

    assert len(outbox.by_key) == 2


async def test_nothing_to_fix_sends_nothing(tenant: Tenant, outbox: Outbox) -> None:
    await tenant.deliver("fix_assignment_repo_permissions", prefix="none-")

    assert outbox.by_key == {}


async def test_a_repository_of_another_organization_is_dead(tenant: Tenant, outbox: Outbox) -> None:
    with pytest.raises(Dead, match="would call 'other'"):
        await tenant.deliver("fix_assignment_repo_permissions", repositories={"other/hw": {}})

    assert outbox.by_key == {}


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ({}, "give either prefix or repositories"),
        ({"prefix": "a", "repositories": {}}, "give either prefix or repositories"),
        ({"repositories": {"hw": {}, "HW": {}}}, "stands here twice"),
        ({"prefix": "a", "teams": {"x": "pull", "X": "push"}}, "twice in different case"),
    ],
)
async def test_contradictions_are_dead_by_name(
    tenant: Tenant, args: dict[str, Any], said: str
) -> None:
    with pytest.raises(Dead, match=said):
        await tenant.deliver("fix_assignment_repo_permissions", **args)


async def test_without_a_sender_the_remedy_is_named(tenant: Tenant) -> None:
    with pytest.raises(ConfigurationError, match="cannot send"):
        await tenant.deliver("fix_assignment_repo_permissions", prefix="hw1-")
