"""The table of searches: what must hold, and which planted fault breaks which assertion."""

from __future__ import annotations

from .checker import Variant

# Two sessions act for one holder; a cap of 1 meets slots that a cap of 2 let in.
TWINS = ("SEATS=2", "SESSIONS=3", "LOW_CAP=1", "TWINS")
IN_TWO_ORGS = ("ORGS=2", "SEATS=2", "SESSIONS=2", "LOW_ORG_CAP=1")

FLEET_CAP = "above+1)<=cap"
ORG_CAP = "hop+1)<=org_cap"
ONE_ORDINAL = "seat[k].ordinal!=ordinal"
ONE_SLOT = "seat[k].holder!=holder"
ONE_HOLDER = "seat[new].holder!=0"
OWN_ONLY = "seat[mine].holder==holder"
NOT_REVIVED = "judged"
NO_DEADLOCK = "hop!=me"

HOLDS = (
    Variant("two seats, two sessions of one holder", TWINS),
    Variant("two orgs, org caps 1 and 2", IN_TWO_ORGS),
    Variant("three seats, one cap", ("SAME_CAP", "LOW_CAP=2", "HIGH_CAP=2"), large=True),
    Variant("three seats, caps 2 and 3", ("LOW_CAP=2",), large=True),
    Variant("three seats, two sessions of one holder", ("LOW_CAP=2", "TWINS"), large=True),
    Variant(
        "two orgs, three sessions, one org cap",
        ("ORGS=2", "SEATS=2", "LOW_ORG_CAP=1", "HIGH_ORG_CAP=1"),
        large=True,
    ),
)

FAULTS = (
    Variant("cap off by one", (*TWINS, "FAULT_CAP_OFF_BY_ONE"), FLEET_CAP),
    Variant("live seats above not counted", (*TWINS, "FAULT_ABOVE_UNCOUNTED"), FLEET_CAP),
    Variant("seat taken without its lock", (*TWINS, "FAULT_SEAT_UNLOCKED"), ONE_HOLDER),
    Variant("holder's name not unique", (*TWINS, "FAULT_NAME_NOT_UNIQUE"), ONE_SLOT),
    Variant("release of another's slot", (*TWINS, "FAULT_FOREIGN_RELEASE"), "holder"),
    Variant("renewal revives a lapsed slot", (*TWINS, "FAULT_RENEW_REVIVES"), NOT_REVIVED),
    Variant("claim revives a lapsed slot", (*TWINS, "FAULT_CLAIM_REVIVES"), NOT_REVIVED),
    Variant("clock read before the lock wait", (*TWINS, "FAULT_STALE_CLOCK"), NOT_REVIVED),
    Variant("lapsed row counted free unlocked", (*TWINS, "FAULT_LAPSED_UNLOCKED"), NOT_REVIVED),
    Variant("waits for a seat, not skip locked", (*TWINS, "FAULT_WAIT_FOR_SEAT"), NO_DEADLOCK),
    Variant("org lock not taken", (*IN_TWO_ORGS, "FAULT_NO_ORG_LOCK"), ONE_ORDINAL),
    Variant("ordinals above not counted", (*IN_TWO_ORGS, "FAULT_ORG_ABOVE_UNCOUNTED"), ORG_CAP),
)
