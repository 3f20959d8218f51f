"""One call of each function in pgmq_public, with arguments that it accepts."""

from __future__ import annotations

CLAIM = {
    "queue_name": "jobs",
    "sleep_seconds": 60,
    "n": 1,
    "holder": "h",
    "lease_ttl_seconds": 60,
    "max_per_org": 1,
    "global_cap": 8,
}
MESSAGES = [{"message": {"method": "m", "args": {"n": 1}}, "org": "a", "key": "k"}]
CALLS = {
    "send_messages": {"queue_name": "jobs", "messages": MESSAGES},
    "claim_org_slot_and_read": CLAIM,
    "renew_org_slot": {"queue_name": "jobs", "holder": "h", "lease_ttl_seconds": 60},
    "heartbeat_org_slot": {
        "queue_name": "jobs",
        "holder": "h",
        "lease_ttl_seconds": 60,
        "sleep_seconds": 60,
        "deliveries": [[1, 1]],
    },
    "settle_and_claim": {**CLAIM, "outcomes": [{"id": 1, "ct": 1, "do": "done", "took_ms": 1}]},
    "release_org_slot": {"queue_name": "jobs", "holder": "h"},
    "once": {"queue_name": "jobs", "key": "charge:1", "token": "t"},
    "queue_stats": {},
    "maintain_queues": {},
    "send": {"queue_name": "jobs", "message": {}},
    "send_batch": {"queue_name": "jobs", "messages": [{}]},
    "read": {"queue_name": "jobs", "sleep_seconds": 60, "n": 1},
    "archive": {"queue_name": "jobs", "message_id": 2},
    "delete": {"queue_name": "jobs", "message_id": 3},
    "pop": {"queue_name": "jobs"},
}
