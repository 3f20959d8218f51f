"""The half of the model that speaks of one delivery: settling it, extending it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .circuit import Circuit
from .values import Outcome, ms, seconds

if TYPE_CHECKING:
    from .records import Message, Queue

VERBS = ("done", "retry", "snooze", "give_back", "dead")


class Deliveries:
    now: int
    queues: dict[str, Queue]
    circuits: dict[str, Circuit]

    def renew(self, queue: str, holder: str, ttl_seconds: int) -> bool:
        raise NotImplementedError

    def settle(self, queue_name: str, outcome: Outcome) -> str:
        queue = self.queues[queue_name]
        message = queue.find(outcome.number)
        if outcome.do not in VERBS or outcome.after_ms < 0:
            return "refused"
        if message is None:
            return "gone"
        if message.read_ct != outcome.read_ct:
            return "lost"
        if message.is_over:
            return "already"
        if outcome.do == "done":
            queue.messages.remove(message)
            if queue.on_success == "archive":
                queue.archived.append(message.number)
        elif outcome.do == "dead":
            queue.messages.remove(message)
            attempts = message.read_ct - message.uncounted
            queue.dead.append((message.number, attempts, outcome.reason))
        else:
            after = 0 if outcome.do == "give_back" else outcome.after_ms
            message.vt = self.now + ms(after)
            message.close(counts=outcome.do == "retry")
        self.tell_circuit(queue_name, message, outcome)
        return "applied"

    def tell_circuit(self, queue: str, message: Message, outcome: Outcome) -> None:
        circuit = self.circuits.setdefault(message.org, Circuit())
        delivery = (queue, message.number, outcome.read_ct)
        if outcome.limit_ms is not None:
            assert message.last_read_at is not None
            circuit.report(self.now, message.last_read_at, outcome.limit_ms, delivery)
        elif circuit.is_probe(delivery):
            circuit.decide(self.now, outcome.do)

    def heartbeat(
        self,
        queue: str,
        holder: str,
        ttl_seconds: int,
        sleep_seconds: int,
        deliveries: list[tuple[int, int]],
    ) -> dict[str, Any]:
        alive = self.renew(queue, holder, ttl_seconds)
        heard: dict[str, list[int]] = {"extended": [], "lost": [], "gone": []}
        for number, read_ct in deliveries:
            message = self.queues[queue].find(number)
            if message is None:
                heard["gone"].append(number)
            elif message.read_ct != read_ct or message.is_over:
                heard["lost"].append(number)
            else:
                self.extend(queue, message, sleep_seconds)
                heard["extended"].append(number)
        return {"slot_alive": alive, **{word: sorted(numbers) for word, numbers in heard.items()}}

    def extend(self, queue: str, message: Message, sleep_seconds: int) -> None:
        message.vt = self.now + seconds(sleep_seconds)
        circuit = self.circuits.get(message.org)
        if circuit is not None and circuit.is_probe((queue, message.number, message.read_ct)):
            circuit.probe_until = message.vt
        suspect = message.read_ct - message.closed_count > 1
        if suspect and message.begun_read_ct != message.read_ct:
            message.begun_read_ct = message.read_ct
            message.begun_count += 1
