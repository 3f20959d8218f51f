"""What the model keeps: messages, queues and slots, as plain records."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Message:
    number: int
    org: str
    key: str | None
    vt: int
    read_ct: int = 0
    last_read_at: int | None = None
    closed_read_ct: int = 0
    closed_count: int = 0
    uncounted: int = 0
    begun_read_ct: int = 0
    begun_count: int = 0

    @property
    def is_over(self) -> bool:
        return self.closed_read_ct == self.read_ct

    def close(self, *, counts: bool) -> None:
        if self.begun_read_ct == self.read_ct:
            self.begun_count -= 1
        self.begun_read_ct = 0
        self.closed_read_ct = self.read_ct
        self.closed_count += 1
        if not counts:
            self.uncounted += 1


@dataclass
class Queue:
    on_success: str
    messages: list[Message] = field(default_factory=list)
    archived: list[int] = field(default_factory=list)
    dead: list[tuple[int, int, str]] = field(default_factory=list)
    cursor: str = ""

    def find(self, number: int) -> Message | None:
        return next((m for m in self.messages if m.number == number), None)


@dataclass
class Slot:
    holder: str
    queue: str
    org: str
    seat: int
    ordinal: int
    expires_at: int
