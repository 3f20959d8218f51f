/* Seats, holders, claim, renew, release and expiry under every interleaving.
 *
 * One atomic step is one SQL statement under READ COMMITTED: it sees what is committed, and the
 * locks. What a transaction writes stays in its own variables until it commits. Time shows only as
 * `lapsed`, which the clock may set between any two statements, whoever holds the row. A session
 * that died is one that never moves again; its locks are gone, as Postgres rolls it back.
 *
 * With ORGS 0 there are seats and fleet caps alone; otherwise ordinals and org caps too. TWINS: a
 * second session acts for holder 1. A FAULT_* flag plants one fault.
 */
#ifndef SEATS
#define SEATS 3
#endif
#ifndef ORGS
#define ORGS 0
#endif
#ifndef SESSIONS
#define SESSIONS 3
#endif
#ifndef LOW_CAP
#define LOW_CAP SEATS
#endif
#ifndef HIGH_CAP
#define HIGH_CAP SEATS
#endif
#ifndef LOW_ORG_CAP
#define LOW_ORG_CAP SEATS
#endif
#ifndef HIGH_ORG_CAP
#define HIGH_ORG_CAP SEATS
#endif

typedef Seat { byte holder; byte org; byte ordinal; bool lapsed; bool judged }
Seat seat[SEATS + 1];
byte seat_lock[SEATS + 1];       /* the session that holds the row lock */
byte name_lock[SESSIONS + 1];    /* unique (holder): an uncommitted row bears this name */
byte org_lock[ORGS + 1];         /* advisory, until commit */
byte waits_seat[SESSIONS + 1];
byte waits_name[SESSIONS + 1];

/* Ghosts: the slots that were live when a session's claim began, and are the same slots still. */
byte seen[SESSIONS + 1];
byte seen_in_org[SESSIONS + 1];

mtype = { stay, repoint, move, fresh };

#ifdef TWINS
#define HOLDER_OF(session) ((session) == SESSIONS -> 1 : (session))
#else
#define HOLDER_OF(session) (session)
#endif
#define TAKEN(s) (seat[s].holder != 0)
#define LIVE(s) (TAKEN(s) && !seat[s].lapsed)
#define LAPSED(s) (TAKEN(s) && seat[s].lapsed)
#define MINE_TO_LOCK(s) (seat_lock[s] == 0 || seat_lock[s] == me)
#define BIT(s) (1 << (s))
#define HAS(mask, s) (((mask) >> (s)) & 1)

/* What Postgres' detector would find: a chain of waits that returns to its beginning. */
inline assert_no_deadlock() {
	hop = me;
	do
	:: waits_seat[hop] != 0 -> hop = seat_lock[waits_seat[hop]]; assert(hop != me)
	:: waits_name[hop] != 0 -> hop = name_lock[waits_name[hop]]; assert(hop != me)
	:: else -> hop = 0; break
	od
}

inline lock_seat(s) {
	if
	:: MINE_TO_LOCK(s)
	:: else ->
		waits_seat[me] = s;
		assert_no_deadlock();
		(seat_lock[s] == 0);
		waits_seat[me] = 0
	fi;
	seat_lock[s] = me
}

inline lock_mine() {
	mine = SEATS;
	do
	:: mine == 0 || seat[mine].holder == holder -> break
	:: else -> mine--
	od;
	alive = mine != 0 && !seat[mine].lapsed;
	if
	:: mine != 0 ->
		lock_seat(mine);
		/* the row is looked at again once its lock is had */
		if
#ifdef FAULT_FOREIGN_RELEASE
		:: true
#else
		:: seat[mine].holder == holder
		:: else -> seat_lock[mine] = 0; mine = 0
#endif
		fi
	:: else
	fi;
#ifndef FAULT_STALE_CLOCK
	alive = mine != 0 && !seat[mine].lapsed
#endif
}

inline forget(s) {
	for (j : 1 .. SESSIONS) {
		seen[j] = seen[j] & ~BIT(s);
		seen_in_org[j] = seen_in_org[j] & ~BIT(s)
	}
}

inline vacate(s) {
	forget(s);
	seat[s].holder = 0; seat[s].org = 0; seat[s].ordinal = 0;
	seat[s].lapsed = false; seat[s].judged = false
}

inline finish() {
	for (k : 1 .. SEATS) { if :: seat_lock[k] == me -> seat_lock[k] = 0 :: else fi }
#if ORGS
	for (k : 1 .. ORGS) { if :: org_lock[k] == me -> org_lock[k] = 0 :: else fi }
#endif
	if :: name_lock[holder] == me -> name_lock[holder] = 0 :: else fi;
	seen[me] = 0; seen_in_org[me] = 0; plan = 0; alive = false;
	mine = 0; org = 0; ordinal = 0; new = 0; cleared = 0; judges = 0; cap = 0; org_cap = 0; k = 0; j = 0
}

/* A lapsed row that cannot be locked may be in the hands of a renewal that read the clock in
 * time: it counts as live. One that can be locked stays so until commit, which shuts the door. */
inline judge(s) {
	if
	:: LIVE(s) -> above++
#ifdef FAULT_LAPSED_UNLOCKED
	:: LAPSED(s) -> judges = judges | BIT(s)
#else
	:: LAPSED(s) && MINE_TO_LOCK(s) -> seat_lock[s] = me; judges = judges | BIT(s)
	:: LAPSED(s) && !MINE_TO_LOCK(s) -> above++
#endif
	:: !TAKEN(s)
	fi
}

/* Sets `ordinal` to one that `org` has free under its cap, else leaves it 0. */
inline take_ordinal() {
#if ORGS
	ordinal = 0;
	if
#ifdef FAULT_NO_ORG_LOCK
	:: true ->
#else
	:: org_lock[org] == 0 -> org_lock[org] = me;
#endif
		select(ordinal : 1 .. SEATS)
	:: true
	fi;
	for (k : 1 .. SEATS) {
		if
		:: ordinal == 0 || k == mine || seat[k].org != org || seat[k].ordinal < ordinal
		:: else ->
			if
			:: seat[k].ordinal > ordinal -> judge(k)
			:: seat[k].ordinal == ordinal && LAPSED(k) && MINE_TO_LOCK(k) ->
				seat_lock[k] = me; cleared = cleared | BIT(k)
			:: else -> ordinal = 0
			fi
		fi
	}
#ifdef FAULT_ORG_ABOVE_UNCOUNTED
	above = 0;
#endif
	if :: ordinal + above > org_cap -> ordinal = 0 :: else fi;
	above = 0; k = 0
#else
	ordinal = 1
#endif
}

/* Sets `new` to a seat, else leaves it 0: any that is not live and that nobody has locked. */
inline take_seat() {
	select(new : 0 .. SEATS);
	if
	:: new == 0
#ifdef FAULT_SEAT_UNLOCKED
	:: new != 0 && !LIVE(new)
#else
	:: new != 0 && !LIVE(new) && MINE_TO_LOCK(new) -> seat_lock[new] = me
#endif
#ifdef FAULT_WAIT_FOR_SEAT
	:: new != 0 && LAPSED(new) && !MINE_TO_LOCK(new) ->
		lock_seat(new);
		if :: LIVE(new) -> new = 0 :: else fi
#endif
	:: else -> new = 0
	fi;
	if :: new != 0 && TAKEN(new) -> cleared = cleared | BIT(new) :: else fi
}

inline count_above() {
	for (k : 1 .. SEATS) {
		if
		:: new != 0 && k > new && k != mine && !HAS(cleared, k) -> judge(k)
		:: else
		fi
	}
#ifdef FAULT_ABOVE_UNCOUNTED
	above = 0;
#endif
#ifdef FAULT_CAP_OFF_BY_ONE
	if :: new + above > cap + 1 -> new = 0 :: else fi;
#else
	if :: new + above > cap -> new = 0 :: else fi;
#endif
	above = 0; k = 0
}

/* The write of a holder's name meets the unique index: an uncommitted twin is waited for. */
inline take_name() {
#ifndef FAULT_NAME_NOT_UNIQUE
	if
	:: name_lock[holder] == 0 || name_lock[holder] == me
	:: else ->
		waits_name[me] = holder;
		assert_no_deadlock();
		(name_lock[holder] == 0);
		waits_name[me] = 0
	fi;
	name_lock[holder] = me;
	for (k : 1 .. SEATS) { if :: seat[k].holder == holder && k != mine -> new = 0 :: else fi }
#else
	skip
#endif
}

/* S1, S2 and S3, at the instant at which others come to see the slot. */
inline assert_invariants() {
	above = 0; hop = 0;
	for (k : 1 .. SEATS) {
		if
		:: k != new ->
			assert(seat[k].holder != holder);
#if ORGS
			assert(!TAKEN(k) || seat[k].org != org || seat[k].ordinal != ordinal);
#endif
			if :: LIVE(k) && HAS(seen[me], k) -> above++ :: else fi;
			if :: LIVE(k) && HAS(seen_in_org[me], k) && seat[k].org == org -> hop++ :: else fi
		:: else
		fi
	}
	assert(plan == stay || plan == repoint || above + 1 <= cap);
	assert(plan == stay || hop + 1 <= org_cap);
#ifdef SAME_CAP
	above = 0;
	for (k : 1 .. SEATS) { if :: LIVE(k) -> above++ :: else fi }
	assert(above <= LOW_CAP);
#endif
	above = 0; hop = 0
}

inline commit() {
	for (k : 1 .. SEATS) {
		if :: HAS(cleared, k) && !(plan == stay) -> vacate(k) :: else fi;
		if :: HAS(judges, k) && TAKEN(k) -> seat[k].judged = true :: else fi
	}
	if
	:: new == 0
	:: else ->
		if
		:: plan == fresh || plan == move -> assert(!TAKEN(new)); forget(new)
		:: plan == repoint ->
			for (j : 1 .. SESSIONS) { seen_in_org[j] = seen_in_org[j] & ~BIT(new) }
		:: else
		fi;
		assert(!seat[new].judged);
		seat[new].holder = holder; seat[new].org = org; seat[new].ordinal = ordinal;
		seat[new].lapsed = false;
		assert_invariants()
	fi;
	finish()
}

inline begin_claim() {
	if :: cap = LOW_CAP :: LOW_CAP != HIGH_CAP -> cap = HIGH_CAP fi;
	if :: org_cap = LOW_ORG_CAP :: LOW_ORG_CAP != HIGH_ORG_CAP -> org_cap = HIGH_ORG_CAP fi;
	org = 1;
	if :: ORGS == 2 -> org = 2 :: true fi;
	for (k : 1 .. SEATS) {
		if :: LIVE(k) && cap < SEATS -> seen[me] = seen[me] | BIT(k) :: else fi;
		if :: LIVE(k) && org_cap < SEATS -> seen_in_org[me] = seen_in_org[me] | BIT(k) :: else fi
	}
	k = 0
}

inline choose_plan() {
	if
	:: mine == 0 -> plan = fresh
#ifdef FAULT_CLAIM_REVIVES
	:: mine != 0 && !alive -> plan = stay; new = mine; org = seat[mine].org; ordinal = seat[mine].ordinal
#else
	:: mine != 0 && !alive -> plan = fresh; cleared = BIT(mine)
#endif
	:: mine != 0 && alive && mine <= cap && (ORGS == 0 || (seat[mine].org == org && seat[mine].ordinal <= org_cap)) ->
		plan = stay; new = mine; ordinal = seat[mine].ordinal
	:: mine != 0 && alive && mine <= cap && ORGS != 0 && !(seat[mine].org == org && seat[mine].ordinal <= org_cap) ->
		plan = repoint; new = mine
	:: mine != 0 && alive && mine > cap -> plan = move; cleared = BIT(mine)
	:: mine != 0 && alive && mine > cap -> finish()          /* pinned: it drains */
	fi;
	if :: plan == stay -> seen[me] = 0; seen_in_org[me] = 0; cap = 0; org_cap = 0 :: plan == repoint -> seen[me] = 0; cap = 0 :: else fi;
	alive = false
}

active [SESSIONS] proctype Session() {
	byte me = _pid + 1;
	byte holder = HOLDER_OF(_pid + 1);
	mtype plan;
	byte mine, org, ordinal, new, cap, org_cap, above, cleared, judges, k, j, hop;
	bool alive;
end:
	do
	:: atomic { begin_claim(); lock_mine(); choose_plan() };
		if
		:: atomic { plan == 0 -> goto end }
		:: plan == stay
		:: plan == repoint ->
			atomic { take_ordinal(); if :: ordinal == 0 -> new = 0 :: else fi }
		:: atomic { plan == fresh || plan == move ->
#if ORGS
			take_ordinal();
			if :: ordinal == 0 -> cleared = 0; judges = 0 :: else fi };
			atomic {
#else
			ordinal = 1;
#endif
			if :: ordinal != 0 -> take_seat() :: else fi };
#if LOW_CAP < SEATS
			atomic { if :: new != 0 -> count_above() :: else fi }
#endif
		fi;
		atomic {
			if :: new != 0 && plan == fresh -> take_name() :: else fi;
			/* without a seat: a mover gives its slot up, all else is undone */
			if
			:: new == 0 && plan == move -> cleared = BIT(mine); judges = 0
			:: new == 0 && plan != move -> cleared = 0; judges = 0
			:: else
			fi;
			commit()
		}
	:: atomic { lock_mine();
#ifdef FAULT_RENEW_REVIVES
			if :: mine != 0 -> alive = true :: else fi;
#endif
			if :: alive :: else -> finish(); goto end fi };
		atomic { assert(!seat[mine].judged); seat[mine].lapsed = false; finish() }
	:: atomic { lock_mine();
			if :: mine != 0 :: else -> finish(); goto end fi };
		atomic { assert(seat[mine].holder == holder); vacate(mine); finish() }
	od
}

active proctype Clock() {
	byte s;
end:
	do
	:: atomic { select(s : 1 .. SEATS); if :: LIVE(s) -> seat[s].lapsed = true :: else fi; s = 0 }
	od
}
