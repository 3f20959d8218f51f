"""Faults planted in the SQL. Each is a plausible slip, and names the scenario that must go red."""

from __future__ import annotations

from .mutation import Edit, Mutant


def mutant(name: str, red: str, *edits: tuple[str, str, str]) -> Mutant:
    planted = tuple(
        Edit(where if "." in where else f"fairlease.{where}", old, new) for where, old, new in edits
    )
    return Mutant(name, red, planted)


ABOVE_CAP_PINNED = "a pinned holder above a lowered cap drains"
ABOVE_CAP_UNPINNED = "an unpinned holder above a lowered cap moves down or gives up"
FLEET = "the fleet cap binds new slots, over all queues"
ORG_OVER_QUEUES = "the cap of an org binds new slots, over all queues"
LAPSES = "a lapsed slot frees its seat, not an instant before"
ORDINALS_ABOVE = "ordinals above are counted against a lower cap"
TURNS = "orgs take turns in byte order after the cursor"
RATE = "starts keep to the rate and the burst"
UNCOUNTED = "a retry counts, a snooze and a give-back do not"
FENCED = "an old delivery settles nothing"
CRASHES = "a handler that began and never ended is a crash"
LEFT = "done leaves the queue as its policy says"
KEYS = "a key is unique while its message is live"
HALF_OPEN = "a half-open circuit lets one message through"
TRIPS = "trips double and a quiet day forgets them"
BLOCKED = "a blocked org does not stop the others"
READ_ORDER = "within an org the first visible is read first"

SLOTS = (
    mutant("pin ignored", "a pinned claim serves the pinned org or nothing",
        ("claim_opened", "when p_ask.pinned then", "when false then")),
    mutant("cap off by one", FLEET,
        ("lock_free_seat", "s.seat <= p_ask.global_cap", "s.seat <= p_ask.global_cap + 1"),
        ("lock_free_seat", "+ v_above <= p_ask.global_cap", "+ v_above <= p_ask.global_cap + 1")),
    mutant("live seats above not counted", "seats above are counted against a lower cap",
        ("lock_free_seat", "v_seat + v_above <=", "v_seat <=")),
    mutant("expiry ignored", LAPSES,
        ("lock_free_seat", "(s.holder is null or s.expires_at <= p_ask.asked_at)",
            "s.holder is null")),
    mutant("expiry a second early", LAPSES,
        ("lock_free_seat", "s.expires_at <= p_ask.asked_at)",
            "s.expires_at <= p_ask.asked_at + interval '1 second')"),
        ("fleet_is_full", "s.expires_at > p_ask.asked_at",
            "s.expires_at > p_ask.asked_at + interval '1 second'")),
    mutant("lapsed ordinals count", "a lapsed slot frees its ordinal",
        ("org_gate", "where s.org = p_org and s.expires_at > p_ask.asked_at and",
            "where s.org = p_org and")),
    mutant("own row not reused", "a holder keeps its one slot",
        ("open_ask", "elsif v_slot.holder is not null then", "elsif false then")),
    mutant("lapsed slot revived by a renewal", "a lapsed slot is not revived by a renewal",
        ("renew", "or p_slot.expires_at <= p_now", "")),
    mutant("lapsed slot revived by a claim", "a lapsed slot is not revived by a claim",
        ("open_ask", "if v_slot.expires_at <= p_ask.asked_at then", "if false then")),
    mutant("lease extended, never shortened", "a new claim sets the lease anew",
        ("seat_holder",
            "expires_at = p_ask.asked_at + make_interval(secs => p_ask.lease_ttl_seconds)",
            ("expires_at = greatest(s.expires_at, "
            "p_ask.asked_at + make_interval(secs => p_ask.lease_ttl_seconds))"))),
    mutant("renewal for any queue", "only the queue of the slot renews and releases it",
        ("renew", "or p_slot.queue <> p_queue", "")),
    mutant("release for any queue", "only the queue of the slot renews and releases it",
        ("pgmq_public.release_org_slot", "v_slot.queue is distinct from v_queue",
            "v_slot.queue is null")),
    mutant("seats above the cap kept, pinned", ABOVE_CAP_PINNED,
        ("find_seat", "if p_ask.own_seat <= p_ask.global_cap then",
            "if p_ask.own_seat is not null then")),
    mutant("seats above the cap kept, unpinned", ABOVE_CAP_UNPINNED,
        ("find_seat", "if p_ask.own_seat <= p_ask.global_cap then",
            "if p_ask.own_seat <= p_ask.global_cap or not p_ask.pinned then")),
    mutant("slot above the cap not given up", ABOVE_CAP_UNPINNED,
        ("find_seat", "if p_ask.seat is null and p_ask.own_seat is not null then",
            "if false then")),
    mutant("global cap counted per queue", FLEET,
        ("lock_free_seat", "s.seat <= p_ask.global_cap\n", "true\n"),
        ("lock_free_seat", "case when v_seat + v_above <= p_ask.global_cap then",
            ("case when (select count(*) from fairlease.seats o where o.queue = p_ask.queue "
            "and o.expires_at > p_ask.asked_at) < p_ask.global_cap then"))),
    mutant("empty claim leaves a slot", "an answer without messages leaves no new slot",
        ("claim_pinned", "if p_ask.own_org is distinct from p_org and", "if false and"),
        ("serve_org", "if v_messages is null then",
            ("perform fairlease.seat_holder(p_ask, p_org, v_hold.ordinal);\n"
            "  if v_messages is null then"))),
    mutant("full caps win over no_demand", "with nothing visible no_demand wins over full caps",
        ("claim_unpinned", "if v_oldest is null then",
            "if v_oldest is null and not fairlease.fleet_is_full(p_ask) then")),
    mutant("a cap of zero does not stop", "a cap of zero stops claiming before anything is read",
        ("claim_opened", "p_ask.global_cap <= 0 or p_ask.max_per_org <= 0",
            "p_ask.global_cap < 0 or p_ask.max_per_org < 0"),
        ("claim", "p_ask.global_cap <= 0 or p_ask.max_per_org <= 0",
            "p_ask.global_cap < 0 or p_ask.max_per_org < 0")),
    mutant("n not clamped", "a plain claim reads a hundred at most, a settling one 500",
        ("pgmq_public.claim_org_slot_and_read", "case when n > 100 then 100 else n end", "n")),
    mutant("n not clamped, settling", "a plain claim reads a hundred at most, a settling one 500",
        ("pgmq_public.settle_and_claim", "case when n > 500 then 500 else n end", "n")),
    mutant("empty holder allowed", "bad arguments are refused by name",
        ("check_slot_arguments", "if coalesce(p_holder, '') = '' then", "if false then")),
)  # fmt: skip

ORGS = (
    mutant("wrong org read", "a pinned claim serves the pinned org or nothing",
        ("make_read", ("({org}, m.vt) >= (p_org, '-infinity'::timestamptz) "
            "and ({org}, m.vt) <= (p_org, p_now)"), "m.vt <= p_now")),
    mutant("org cap off by one", ORG_OVER_QUEUES,
        ("fits_org", "p_others < p_cap", "p_others <= p_cap"),
        ("take_ordinal", "1 .. least(p_cap, 1024)", "1 .. least(p_cap + 1, 1024)"),
        ("take_ordinal", "v_ordinal + v_above > p_cap", "v_ordinal + v_above > p_cap + 1")),
    mutant("per-org cap counted per queue", ORG_OVER_QUEUES,
        ("org_gate", "where s.org = p_org and",
            "where s.org = p_org and s.queue = p_ask.queue and"),
        ("take_ordinal", "least(p_cap, 1024)", "1024"),
        ("take_ordinal", "exit when v_ordinal + v_above > p_cap;", "")),
    mutant("ordinal above the cap kept", ORDINALS_ABOVE,
        ("fits_org", "p_ask.own_org = p_org and p_ask.own_ordinal <= p_cap then",
            "p_ask.own_org = p_org then"),
        ("serve_org", "coalesce(p_gate.ordinal <= p_gate.org_cap, false)",
            "p_gate.ordinal is not null")),
    mutant("pinned above the org's cap moves down", ORDINALS_ABOVE,
        ("fits_org", "when p_ask.own_org = p_org and p_ask.pinned then false", "")),
    mutant("an org's own cap cannot raise the argument", "an org's own cap replaces the argument",
        ("org_gate", "coalesce(l.max_per_org, p_ask.max_per_org)",
            "least(l.max_per_org, p_ask.max_per_org)")),
    mutant("cursor not advanced", TURNS, ("move_cursor", "if found then", "if false then")),
    mutant("orgs by the alphabet from its top", TURNS,
        ("start_rotation", "coalesce(v_at.start_org, '')", "''")),
    mutant("the holder's own slot counts", "the holder's own slot does not put its org back",
        ("org_gate", "and s.expires_at > p_ask.asked_at and s.holder <> p_ask.holder",
            "and s.expires_at > p_ask.asked_at")),
    mutant("depth before breadth", "an org with fewer slots goes first",
        ("make_probe", "p_at.found[cardinality(p_at.found)].others = 0", "true")),
    mutant("most slots first", "an org with fewer slots goes first",
        ("pick_org", "v_gate.others < p_picked.others", "v_gate.others > p_picked.others")),
    mutant("read by id alone", READ_ORDER,
        ("make_read", "order by {org}, m.vt, m.msg_id", "order by {org}, m.msg_id"),
        ("make_read", "order by t.was, t.msg_id", "order by t.msg_id")),
    mutant("answer in order of ids", READ_ORDER,
        ("make_read", "order by t.was, t.msg_id", "order by t.msg_id")),
    mutant("delayed messages read", "only what is visible is read",
        ("make_read", "<= (p_org, p_now)", "<= (p_org, p_now + interval '1 hour')")),
    mutant("paused org claimed", "a paused org is left alone",
        ("guard_org", "if p_limits.paused then", "if false then")),
    mutant("org_capacity reported as no_demand", BLOCKED,
        ("end_rotation", "fairlease.refusal('org_capacity', p_at.cause, p_at.retry_after_ms)",
            "fairlease.refusal('no_demand', null)")),
    mutant("org_capacity reported as no_capacity", "a paused org is left alone",
        ("serve_org",
            "case when p_gate.cause = 'locked' then 'no_capacity' else 'org_capacity' end",
            "'no_capacity'")),
    mutant("GCRA drift: arrival rounded up", "a rate does not drift in an hour",
        ("charge_org", "fairlease.arrival_time(l, p_ask.asked_at) + 60",
            "ceil(fairlease.arrival_time(l, p_ask.asked_at)) + 60")),
    mutant("GCRA drift: arrival rounded down", "a rate does not drift in an hour",
        ("charge_org", "fairlease.arrival_time(l, p_ask.asked_at) + 60",
            "floor(fairlease.arrival_time(l, p_ask.asked_at)) + 60")),
    mutant("starts charged as asked, not as returned", RATE,
        ("charge_org", "60 * cardinality(p_messages)", "60 * p_ask.n")),
    mutant("burst one too many", RATE, ("tokens", "p_limits.burst - (", "p_limits.burst + 1 - (")),
    mutant("starts not charged", RATE,
        ("charge_org", "l.starts_per_minute is not null", "false")),
    mutant("a new rate forgives what is owed", "a rate that changes keeps what is owed",
        ("rebase_arrival_time", "greatest(0, old.tat - v_epoch * old.starts_per_minute)", "0")),
    mutant("pin not folded", "an org is one whatever the case of its letters",
        ("fold_org", "fairlease.org_of(null, jsonb_build_object('x-org', p_org))", "p_org")),
    mutant("empty org taken for an org", "the org of a message is the first that is not empty",
        ("org_of", "nullif(message ->> 'org', '')", "message ->> 'org'")),
)  # fmt: skip

DELIVERIES = (
    mutant("fencing ignored in settle", FENCED,
        ("judge_outcome", "when p_locked.read_ct <> p_outcome.ct then 'lost'", "")),
    mutant("fencing ignored in heartbeat", FENCED,
        ("extend_deliveries", "d.id = l.msg_id and d.ct = l.read_ct", "d.id = l.msg_id"),
        ("sort_deliveries", "on e.msg_id = d.id and e.read_ct = d.ct", "on e.msg_id = d.id")),
    mutant("fencing ignored where all are done", FENCED,
        ("make_finish", "where m.msg_id = o.id and m.read_ct = o.ct", "where m.msg_id = o.id")),
    mutant("idempotence dropped where all are done",
        "a delivery settled again is not counted again",
        ("make_finish", "is distinct from o.ct", "is distinct from -o.ct")),
    mutant("state kept where all are done", "what left the queue forgets its counts",
        ("make_finish", "s.msg_id = any (array(select k.msg_id from kept k))", "false")),
    mutant("idempotence dropped", "a delivery settled again is not counted again",
        ("judge_outcome", "when p_state.closed_read_ct = p_outcome.ct then 'already'", "")),
    mutant("give-back counts an attempt", UNCOUNTED,
        ("close_deliveries", "o.verb in ('snooze', 'give_back')", "o.verb = 'snooze'")),
    mutant("snooze counts an attempt", UNCOUNTED,
        ("close_deliveries", "o.verb in ('snooze', 'give_back')", "o.verb = 'give_back'")),
    mutant("retry does not count", UNCOUNTED,
        ("close_deliveries", "o.verb in ('snooze', 'give_back')", "true")),
    mutant("give-back waits", UNCOUNTED,
        ("judge_outcome", "when p_outcome.verb = 'give_back' then interval '0'",
            "when false then interval '0'")),
    mutant("heartbeat extends a finished delivery",
        "a late heartbeat does not hide what was given back",
        ("extend_deliveries", "where s.closed_read_ct is distinct from l.read_ct", "where true")),
    mutant("heartbeat extends nothing", "a heartbeat hides what is still running",
        ("extend_deliveries", "array(select v_until from", "array(select p_now from")),
    mutant("a beginning counted twice", CRASHES,
        ("book_beginnings", "and k.begun_read_ct is distinct from e.read_ct", "")),
    mutant("an end does not take the beginning back", CRASHES,
        ("close_deliveries", "then s.begun_count - 1", "then s.begun_count")),
    mutant("beginnings not booked", CRASHES,
        ("book_beginnings", "coalesce(k.closed_count, 0) > 1", "coalesce(k.closed_count, 0) > 9")),
    mutant("every second delivery begins a crash", "a delivery that was settled is no crash",
        ("book_beginnings", "e.read_ct - coalesce(k.closed_count, 0) > 1", "e.read_ct > 1")),
    mutant("dead letter without removal", LEFT,
        ("make_bury", ("delete from {q} m\n    using unnest(p_outcomes) o\n"
            "    where m.msg_id = o.id\n    returning m.msg_id"), "select m.msg_id"),
        ("make_bury", "o.error, o.claimed_at\n  )",
            ("o.error, o.claimed_at\n"
            "    from {q} m join unnest(p_outcomes) o on m.msg_id = o.id\n  )"))),
    mutant("removal without dead letter", LEFT,
        ("make_bury", "from gone g\n", "from (select * from gone limit 0) g\n")),
    mutant("archived against the policy", LEFT,
        ("apply_kind", "elsif p_queue.on_success = 'delete' then", "elsif false then")),
    mutant("deleted against the policy", LEFT,
        ("apply_kind", "elsif p_queue.on_success = 'delete' then", "elsif true then"),
        ("settle", "p_queue.on_success = 'archive' and", "false and")),
    mutant("state kept after removal", "what left the queue forgets its counts",
        ("apply_kind", "s.msg_id = any (v_ids)", "false")),
    mutant("key unique after archive", KEYS,
        ("make_insert", "from unnest(p_messages) n\n",
            ("from unnest(p_messages) n\n    where not exists (select from {a} a "
            "where a.message ->> 'key' = n.key)\n"))),
    mutant("key not kept", KEYS,
        ("parse_message", "v_new.message || jsonb_build_object('key', p_said ->> 'key')",
            "v_new.message")),
    mutant("one bad outcome undoes its neighbours", "one bad outcome does not undo its neighbours",
        ("parse_outcomes", "'refused', r.note", "(1 / (r.place - r.place))::text, r.note")),
)  # fmt: skip

CIRCUITS = (
    mutant("open circuit claimed", "an open circuit keeps its org out",
        ("guard_org", "elsif v_until > p_now then", "elsif false then")),
    mutant("half-open lets more through", HALF_OPEN,
        ("guard_org", "p_gate.room := least(p_gate.room, 1)", "p_gate.room := p_gate.room")),
    mutant("half-open lets two holders through", HALF_OPEN,
        ("charge_org", "if p_gate.half_open then", "if false then")),
    mutant("any delivery decides", "the probe decides, and nothing else",
        ("settle_probe", "c.probe_id = p_outcome.id and c.probe_ct = p_outcome.ct", "true")),
    mutant("a snoozed probe closes", "a probe that is snoozed or given back frees its place",
        ("settle_probe", "in ('done', 'retry', 'dead')", "in ('done', 'retry', 'dead', 'snooze')")),
    mutant("a failed probe keeps the circuit open", "the probe decides, and nothing else",
        ("settle_probe", "in ('done', 'retry', 'dead')", "in ('done', 'dead')")),
    mutant("a probe's heartbeat is not booked",
        "a probe that dies frees its place with its visibility",
        ("extend_deliveries", "set probe_until = v_until", "set probe_until = c.probe_until")),
    mutant("one incident, many trips", "one incident is one trip",
        ("is_trip", "p_outcome.claimed_at > v_circuit.opened_at", "true")),
    mutant("trips do not double", TRIPS,
        ("report_limit", "* 2::numeric ^ least(v_circuit.trips - 1, 30)", "")),
    mutant("trips are never forgotten", TRIPS,
        ("report_limit", "> p_now - interval '1 day'", "> '-infinity'")),
    mutant("trips double without end", TRIPS,
        ("report_limit", "* 2::numeric ^ least(v_circuit.trips - 1, 30), v_day",
            "* 2::numeric ^ least(v_circuit.trips - 1, 30), 30 * v_day")),
)  # fmt: skip

SQL_MUTANTS = (*SLOTS, *ORGS, *DELIVERIES, *CIRCUITS)
