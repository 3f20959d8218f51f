"""Dead letters as an operator sees them: listed, read, sent again, removed."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from fairlease.admin.operating import Session, operate
from fairlease.errors import CallRefused, InvalidInput

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

# Letters in one transaction: short enough to get in nobody's way.
CHUNK = 500
_WHERE = """
  (%(queue)s::text is null or d.queue = %(queue)s)
  and (%(org)s::text is null or d.org = fairlease.fold_org(%(org)s))
  and (%(method)s::text is null or d.message ->> 'method' = %(method)s)
  and (%(reason)s::text is null or strpos(lower(d.reason), lower(%(reason)s)) > 0)
  and (%(older_than)s::interval is null
    or d.died_at < fairlease.now_() - %(older_than)s::interval)
"""
_COUNT = f"select count(*) from fairlease.dead_letters d where {_WHERE}"  # noqa: S608 - constants
_LIST = f"""
select d.id, d.queue, d.org, d.message ->> 'method' as method, d.msg_id, d.attempts, d.reason,
  right(d.error, 2000) as error, d.died_at
from fairlease.dead_letters d where {_WHERE} order by d.id desc limit %(limit)s
"""  # noqa: S608 - constants
_PAGE = f"""
select d.id from fairlease.dead_letters d
where d.id > %(after)s and d.id <= %(until)s and {_WHERE} order by d.id limit %(limit)s
"""  # noqa: S608 - constants
_DELETE = f"""
with gone as (
  delete from fairlease.dead_letters d
  where d.id = any (array(
    select d.id from fairlease.dead_letters d
    where d.id > %(after)s and d.id <= %(until)s and {_WHERE} order by d.id limit %(limit)s
    for update skip locked
  ))
  returning d.id
)
select count(*) as removed, max(g.id) as last_id from gone g
"""  # noqa: S608 - constants
_SHOW = """
select d.*, d.message ->> 'method' as method from fairlease.dead_letters d where d.id = %(id)s
"""
_PAYLOAD = ("message", "headers")


@dataclass(frozen=True)
class Which:
    """What is None selects all. `reason` is a part of it; `older_than` an interval, `2 days`."""

    queue: str | None = None
    org: str | None = None
    method: str | None = None
    reason: str | None = None
    older_than: str | None = None

    @property
    def is_all(self) -> bool:
        return not any(value is not None for value in asdict(self).values())


@dataclass
class Replayed:
    """What became of each letter: `refused` stay, `gone` were not there any more."""

    replayed: list[dict[str, int]] = field(default_factory=list)
    refused: list[dict[str, Any]] = field(default_factory=list)
    gone: list[int] = field(default_factory=list)

    def add(self, result: dict[str, Any]) -> None:
        letter = result["id"]
        if result["result"] == "replayed":
            self.replayed.append({"id": letter, "msg_id": result["msg_id"]})
        elif result["result"] == "refused":
            self.refused.append({"id": letter, "note": result["note"]})
        else:
            self.gone.append(letter)


def count(url: str, which: Which) -> int:
    with operate(url) as session:
        return int(session.value(_COUNT, **asdict(which)))


def list_some(url: str, which: Which, limit: int) -> list[dict[str, Any]]:
    """The newest first; `error` is the last line of what was raised."""
    with operate(url) as session:
        found = session.rows(_LIST, **asdict(which), limit=limit)
    for letter in found:
        lines = (letter["error"] or "").strip().splitlines()
        letter["error"] = lines[-1] if lines else None
    return found


def show(url: str, letter: int, *, payload: bool = False) -> dict[str, Any]:
    """Everything that is known; message and headers on request. Raises InvalidInput for none."""
    with operate(url) as session:
        found = session.rows(_SHOW, id=letter)
    if not found:
        raise InvalidInput(f"there is no dead letter {letter}: `fairlease dlq list` shows them")
    return {name: value for name, value in found[0].items() if payload or name not in _PAYLOAD}


def replay(
    url: str,
    chosen: Sequence[int] | Which,
    *,
    limit: int | None = None,
    progress: Callable[[int], None] = lambda _done: None,
) -> Replayed:
    """Send letters again, the oldest first, in chunks that stay done if a later one fails.

    Letters that die while it runs are left for the next time. `progress` hears how many are done.
    """
    answer = Replayed()
    with operate(url) as session:
        for ids in _chunks(session, chosen, limit):
            for result in _replay_chunk(session, ids):
                answer.add(result)
            progress(len(answer.replayed) + len(answer.refused) + len(answer.gone))
    return answer


def purge(url: str, chosen: Sequence[int] | Which, *, limit: int | None = None) -> int:
    """Remove letters for good; those that somebody sends again right now are left."""
    removed = 0
    with operate(url) as session:
        if not isinstance(chosen, Which):
            query = "delete from fairlease.dead_letters d where d.id = any (%(ids)s) returning d.id"
            return len(session.rows(query, ids=list(chosen)))
        after, until = 0, _last_id(session)
        while limit is None or removed < limit:
            size = CHUNK if limit is None else min(CHUNK, limit - removed)
            values = {**asdict(chosen), "after": after, "until": until, "limit": size}
            [chunk] = session.rows(_DELETE, **values)
            if not chunk["removed"]:
                break
            removed += chunk["removed"]
            after = chunk["last_id"]
    return removed


def _chunks(
    session: Session, chosen: Sequence[int] | Which, limit: int | None
) -> Iterator[list[int]]:
    if not isinstance(chosen, Which):
        ids = list(chosen)
        yield from (ids[start : start + CHUNK] for start in range(0, len(ids), CHUNK))
        return
    after, until, left = 0, _last_id(session), limit
    while left is None or left > 0:
        size = CHUNK if left is None else min(CHUNK, left)
        values = {**asdict(chosen), "after": after, "until": until, "limit": size}
        ids = [row["id"] for row in session.rows(_PAGE, **values)]
        if not ids:
            return
        yield ids
        after = ids[-1]
        left = None if left is None else left - len(ids)


def _replay_chunk(session: Session, ids: list[int]) -> list[dict[str, Any]]:
    """One letter that cannot be sent does not keep its neighbours: they go one by one."""
    try:
        return list(session.value("select fairlease.replay_dead_letters(%(ids)s)", ids=ids))
    except (CallRefused, InvalidInput) as error:
        if len(ids) == 1:
            return [{"id": ids[0], "result": "refused", "note": str(error)}]
    return [result for letter in ids for result in _replay_chunk(session, [letter])]


def _last_id(session: Session) -> int:
    return int(session.value("select coalesce(max(id), 0) from fairlease.dead_letters"))
