"""The port to the database with a span for each call: claim, settle, renew, enqueue."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from opentelemetry import trace
from opentelemetry.trace import Span, SpanKind, Status, StatusCode

from fairlease.errors import RpcError
from fairlease.telemetry.counting import label
from fairlease.telemetry.failures import kind_of_error

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fairlease.model import (
        ClaimAnswer,
        ClaimRequest,
        Delivery,
        Heartbeat,
        NewMessage,
        Outcome,
        Sent,
    )
    from fairlease.rpc import Rpc
    from fairlease.telemetry.spans import Spans

# Ids that one span names.
_MOST_IDS = 100


@dataclass(frozen=True, slots=True)
class TracedCalls:
    """`Rpc`. A call belongs to the span that is active where it is made, else to its run."""

    rpc: Rpc
    spans: Spans
    run_id: str

    async def claim_org_slot_and_read(
        self, request: ClaimRequest, *, timeout_seconds: float
    ) -> ClaimAnswer:
        with self._span("claim", request.queue) as span:
            answer = await self.rpc.claim_org_slot_and_read(
                request, timeout_seconds=timeout_seconds
            )
            _say_claim(span, answer)
            return answer

    async def settle_and_claim(
        self, request: ClaimRequest, outcomes: Sequence[Outcome], *, timeout_seconds: float
    ) -> ClaimAnswer:
        name = "settle" if not request.n else "settle and claim" if outcomes else "claim"
        with self._span(name, request.queue) as span:
            _say_ids(span, [outcome.delivery for outcome in outcomes])
            answer = await self.rpc.settle_and_claim(
                request, outcomes, timeout_seconds=timeout_seconds
            )
            if request.n:
                _say_claim(span, answer)
            return answer

    async def heartbeat_org_slot(
        self,
        queue: str,
        holder: str,
        lease_ttl_seconds: int,
        sleep_seconds: int,
        deliveries: Sequence[Delivery],
        *,
        timeout_seconds: float,
    ) -> Heartbeat:
        with self._span("renew", queue) as span:
            _say_ids(span, deliveries)
            answer = await self.rpc.heartbeat_org_slot(
                queue,
                holder,
                lease_ttl_seconds,
                sleep_seconds,
                deliveries,
                timeout_seconds=timeout_seconds,
            )
            span.set_attribute("fairlease.slot_alive", answer.slot_alive)
            return answer

    async def renew_org_slot(
        self, queue: str, holder: str, lease_ttl_seconds: int, *, timeout_seconds: float
    ) -> bool:
        with self._span("renew", queue) as span:
            alive = await self.rpc.renew_org_slot(
                queue, holder, lease_ttl_seconds, timeout_seconds=timeout_seconds
            )
            span.set_attribute("fairlease.slot_alive", alive)
            return alive

    async def release_org_slot(self, queue: str, holder: str, *, timeout_seconds: float) -> bool:
        with self._span("release", queue):
            return await self.rpc.release_org_slot(queue, holder, timeout_seconds=timeout_seconds)

    async def send_messages(
        self,
        queue: str,
        messages: Sequence[NewMessage],
        delay_seconds: int = 0,
        *,
        timeout_seconds: float,
    ) -> Sent:
        with self._span("enqueue", queue, SpanKind.PRODUCER) as span:
            sent = await self.rpc.send_messages(
                queue, messages, delay_seconds, timeout_seconds=timeout_seconds
            )
            span.set_attribute("fairlease.msg_ids", [str(i) for i in sent.ids[:_MOST_IDS]])
            return sent

    async def send_batch(
        self, queue: str, bodies: Sequence[Any], delay_seconds: int = 0, *, timeout_seconds: float
    ) -> list[int]:
        with self._span("enqueue", queue, SpanKind.PRODUCER):
            return await self.rpc.send_batch(
                queue, bodies, delay_seconds, timeout_seconds=timeout_seconds
            )

    async def once(self, queue: str, key: str, token: str, *, timeout_seconds: float) -> bool:
        return await self.rpc.once(queue, key, token, timeout_seconds=timeout_seconds)

    async def archive(self, queue: str, msg_id: int, *, timeout_seconds: float) -> bool:
        with self._span("settle", queue) as span:
            span.set_attribute("fairlease.msg_ids", [str(msg_id)])
            return await self.rpc.archive(queue, msg_id, timeout_seconds=timeout_seconds)

    async def aclose(self) -> None:
        await self.rpc.aclose()

    @contextmanager
    def _span(self, name: str, queue: str, kind: SpanKind = SpanKind.CLIENT) -> Iterator[Span]:
        # A renewal is made in a thread of its own, where no span is active.
        active = trace.get_current_span().get_span_context().is_valid
        span = self.spans.tracer.start_span(
            name,
            None if active else self.spans.within(self.run_id),
            kind,
            {
                "messaging.system": "pgmq",
                "messaging.destination.name": queue,
                "fairlease.run_id": self.run_id,
            },
            start_time=self.spans.now(),
        )
        try:
            yield span
        except BaseException as error:
            span.set_status(Status(StatusCode.ERROR))
            span.set_attribute("error.type", kind_of_error(error))
            if isinstance(error, RpcError) and error.code:
                span.set_attribute("fairlease.code", error.code)
            raise
        finally:
            span.end(self.spans.now())


def _say_claim(span: Span, answer: ClaimAnswer) -> None:
    span.set_attribute("fairlease.status", answer.status.value)
    span.set_attribute("fairlease.messages", len(answer.messages))
    if answer.cause:
        span.set_attribute("fairlease.cause", answer.cause)
    if answer.org:
        span.set_attribute("fairlease.org", label(answer.org))


def _say_ids(span: Span, deliveries: Sequence[Delivery]) -> None:
    ids = [str(delivery.msg_id) for delivery in deliveries[:_MOST_IDS]]
    span.set_attribute("fairlease.msg_ids", ids)
