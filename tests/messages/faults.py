"""Planted faults that the random sequences must notice, in the SQL and in the Python."""

from __future__ import annotations

from differential.mutation import Edit, Mutant
from drain.faults.fault import Fault


def in_sql(name: str, *edits: tuple[str, str, str]) -> Mutant:
    planted = tuple(
        Edit(where if "." in where else f"fairlease.{where}", old, new) for where, old, new in edits
    )
    return Mutant(name, "", planted)


def in_python(name: str, file: str, before: str, after: str) -> Fault:
    return Fault("", "", f"fairlease/{file}", before, after, name)


IN_SQL = (
    in_sql("an old delivery settles",
        ("judge_outcome", "when p_locked.read_ct <> p_outcome.ct then 'lost'", ""),
        ("make_finish", "filter (where l.read_ct = i.ct)", "")),
    in_sql("a settle sent again counts again",
        ("judge_outcome", "when p_state.closed_read_ct = p_outcome.ct then 'already'", "")),
    in_sql("a give-back counts as an attempt",
        ("close_deliveries", "o.verb in ('snooze', 'give_back')", "o.verb = 'snooze'")),
    in_sql("a snooze counts as an attempt",
        ("close_deliveries", "o.verb in ('snooze', 'give_back')", "o.verb = 'give_back'")),
    in_sql("a retry does not count",
        ("close_deliveries", "o.verb in ('snooze', 'give_back')", "true")),
    in_sql("a dead letter stays in its queue",
        ("make_bury", "delete from {q} m\n    using (", "update {q} m set vt = m.vt\n    from (")),
    in_sql("a dead letter is lost",
        ("make_bury", "from gone g\n", "from (select * from gone limit 0) g\n")),
    in_sql("what is done is archived and stays",
        ("make_finish", "delete from {q} m\n", "update {q} m set vt = m.vt\n")),
    in_sql("attempts used up are tried again",
        ("judge_outcome", "p_outcome.attempt >= p_max_attempts", "false")),
    in_sql("a count is left behind", ("apply_kind", "s.msg_id = any (v_ids)", "false")),
    in_sql("a heartbeat hides what was given back",
        ("extend_deliveries", "where s.closed_read_ct is distinct from l.read_ct", "where true")),
    in_sql("beginnings are not booked",
        ("book_beginnings", "coalesce(k.closed_count, 0) > 1", "coalesce(k.closed_count, 0) > 9")),
    in_sql("a beginning that ended stays a crash",
        ("close_deliveries", "then s.begun_count - 1", "then s.begun_count")),
    in_sql("a replayed letter stays",
        ("replay_dead_letters", "if v_result ->> 'result' = 'replayed' then", "if false then")),
    in_sql("a letter whose key is live is thrown away",
        ("replay_dead_letters", "if v_result ->> 'result' = 'replayed' then", "if true then")),
    in_sql("a replay forgets the org", ("replay_letter", "'x-org', p_letter.org", "'x-org', 'b'")),
    in_sql("a replay forgets where it came from",
        ("replay_letter", "'x-replay-of', jsonb_build_object(", "'x-of', jsonb_build_object(")),
    in_sql("a second send is answered with an id of its own",
        ("make_bearers", "where md5(m.message ->> 'key') = md5(n.key) and", "where")),
    in_sql("a purge takes what runs",
        ("purge_waiting", "(m.vt <= $2 or m.read_ct = 0 or", "(m.vt <= $2 or m.read_ct > 0 or")),
    in_sql("an effect happens in each delivery",
        ("pgmq_public.once", "return found or exists", "return true or exists")),
    in_sql("an effect is lost with an answer",
        ("pgmq_public.once", "and i.token = once.token", "and false")),
)  # fmt: skip

IN_PYTHON = (
    in_python(
        "what was given back is called done", "drain/handle.py",
        "return GiveBack(delivery, took_ms=took_ms)", "return Done(delivery, took_ms=took_ms)",
    ),
    in_python(
        "a give-back is sent as a retry", "transports/codec.py",
        'said["do"] = "give_back"', 'said["do"] = "retry"',
    ),
    in_python(
        "a snooze is sent as a retry", "transports/codec.py",
        'said |= {"do": "snooze", "after_ms": after_ms}',
        'said |= {"do": "retry", "after_ms": after_ms}',
    ),
    in_python(
        "poison is handled", "drain/handle.py",
        "if crashes > self.setup.knobs.max_crashes:", "if crashes > 99:",
    ),
    in_python(
        "a suspect delivery begins unrecorded", "drain/handle.py",
        "if flight.message.suspect and not await", "if False and not await",
    ),
    in_python(
        "one attempt too many", "messages/retry.py",
        "if attempt >= policy.max_attempts:", "if attempt > policy.max_attempts:",
    ),
    in_python(
        "deliveries are counted, not attempts", "transports/codec.py",
        'attempt=int(row.get("attempt") or read_ct),', "attempt=read_ct,",
    ),
    in_python(
        "a key is not sent", "messages/outgoing.py",
        "if message.key is not None:\n        said", "if message.key == '':\n        said",
    ),
    in_python(
        "a question repeated is another question", "messages/context.py",
        "return await self.inbox(self.queue, key, token)\n            except",
        "return await self.inbox(self.queue, key, uuid.uuid4().hex)\n            except",
    ),
    in_python(
        "a handler that failed is done", "drain/handle.py",
        "if raised is None:\n            return Done", "if True:\n            return Done",
    ),
    in_python(
        "a snooze does not wait", "transports/codec.py",
        'said |= {"do": "snooze", "after_ms": after_ms}',
        'said |= {"do": "snooze", "after_ms": 0}',
    ),
)  # fmt: skip
