from __future__ import annotations

import re
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from fairlease.events import (
    ClaimAnswered,
    Degraded,
    DeliveryLost,
    FunctionStarted,
    HandlerEnded,
    HandlerStarted,
    HeartbeatFailed,
    LoopBlocked,
    RunEnded,
    RunStarted,
)
from fairlease.model import ClaimStatus, QueueStats
from fairlease.telemetry.exposition import Now, expose
from fairlease.telemetry.metrics import Metrics

DOCUMENT = Path(__file__).parents[3] / "docs" / "metrics.md"
STATS = QueueStats("q", 3, 2, 1, 12.5, 7, 1, 4)
NOW = Now({"q": 2}, {"q": 1}, {"worker": 1}, 8, 3, 0.25, (STATS,))


def ended(org: str = "a", outcome: str = "Done", **more: object) -> HandlerEnded:
    values = {"queue": "q", "method": "m", "msg_id": 1, "attempt": 1, "seconds": 0.3, **more}
    return HandlerEnded("r", org=org, outcome=outcome, **values)  # type: ignore[arg-type]


def everything() -> Metrics:
    metrics = Metrics()
    for event in (
        RunStarted("r", ("q",), "d", 1.0),
        FunctionStarted("r", "worker"),
        ClaimAnswered(
            "r", "q", ClaimStatus.CLAIMED, None, "a", pinned=False, messages=1, seconds=1
        ),
        HandlerStarted("r", "q", "a", "m", 1, 1, 2.0, {}),
        ended(crashes=1),
        ended(outcome="RetryLater", org="b", error=ValueError("secret")),
        DeliveryLost("r", "q", 1, "why"),
        HeartbeatFailed("r", "holder", "error"),
        LoopBlocked("r", 1.5, "stack"),
        Degraded("r", "pin_org", "batch at a time"),
        RunEnded("r", "idle", 1, 1, 1.0, ()),
    ):
        metrics.observe(event)
    return metrics


def exposed(metrics: Metrics, now: Now = NOW) -> dict[tuple[str, ...], float]:
    """(sample's name, its labels as k=v in the order of names) -> value."""
    body, _ = expose(metrics, now)
    return {
        (sample.name, *(f"{k}={v}" for k, v in sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(body.decode())
        for sample in family.samples
    }


def test_the_page_has_the_documented_names_and_labels_and_no_others() -> None:
    documented = {}
    for line in DOCUMENT.read_text().splitlines():
        if line.startswith("| `fairlease_"):
            name, kind, labels = line.split("|")[1:4]
            documented[name.strip(" `")] = (
                kind.split(",")[0].strip(),
                sorted(re.findall(r"\w+", labels)),
            )
    found = {}
    body, _ = expose(everything(), NOW)
    for family in text_string_to_metric_families(body.decode()):
        name = f"{family.name}_total" if family.type == "counter" else family.name
        labels = sorted(set(family.samples[0].labels) - {"le"})
        found[name] = (family.type, labels)
    assert found == documented


def test_each_event_is_counted_under_its_labels() -> None:
    page = exposed(everything())
    message = ("fairlease_messages_total", "method=m")
    assert page[(*message, "org=a", "outcome=done", "queue=q")] == 1
    assert page[(*message, "org=b", "outcome=retry", "queue=q")] == 1
    assert page["fairlease_deliveries_total", "crashed=true", "method=m", "queue=q"] == 1
    assert page["fairlease_claims_total", "queue=q", "status=claimed"] == 1
    assert page["fairlease_heartbeats_failed_total", "queue=q"] == 1
    assert page["fairlease_runs_total", "function=worker"] == 1
    assert page["fairlease_runs_degraded_total", "missing=pin_org"] == 1
    assert page["fairlease_queueing_seconds_sum", "queue=q"] == 2.0
    assert page["fairlease_handler_seconds_bucket", "le=0.25", "method=m", "queue=q"] == 0
    assert page["fairlease_handler_seconds_bucket", "le=0.5", "method=m", "queue=q"] == 2
    assert page["fairlease_queue_depth", "queue=q", "state=delayed"] == 1
    assert "secret" not in str(page)


def test_a_message_whose_method_nobody_has_makes_no_label() -> None:
    metrics = Metrics()
    for _ in range(3):
        metrics.observe(ended(outcome="DeadLetter", method="", seconds=0.0))
    page = exposed(metrics)
    assert page["fairlease_deliveries_total", "crashed=false", "method=unknown", "queue=q"] == 3
    assert not any("handler_seconds" in key[0] for key in page)


def test_without_an_answer_of_the_database_its_gauges_are_absent() -> None:
    names = {key[0] for key in exposed(everything(), Now(in_flight={"q": 0}))}
    assert "fairlease_in_flight" in names
    assert not names & {"fairlease_queue_depth", "fairlease_dead_letters", "fairlease_slots_cap"}


def test_clocks_that_differ_do_not_make_a_negative_wait() -> None:
    metrics = Metrics()
    metrics.observe(HandlerStarted("r", "q", "a", "m", 1, 1, -5.0, {}))
    metrics.observe(HandlerStarted("r", "q", "a", "m", 1, 2, None, {}))
    page = exposed(metrics)
    assert page["fairlease_queueing_seconds_count", "queue=q"] == 1
    assert page["fairlease_queueing_seconds_sum", "queue=q"] == 0.0


def test_openmetrics_is_spoken_to_who_asks_for_it() -> None:
    body, content_type = expose(everything(), NOW, "application/openmetrics-text; version=1.0.0")
    assert content_type.startswith("application/openmetrics-text")
    assert body.endswith(b"# EOF\n")
