"""Whether pgmq tells listeners of a queue's new messages."""

from __future__ import annotations

import psycopg

from fairlease.admin.connection import connect
from fairlease.errors import CallRefused, InvalidInput


def tell_of_inserts(url: str, queue: str, throttle_ms: int | None) -> None:
    """Notify at most once in `throttle_ms`, 0 for once a transaction; None turns it off.

    Raises InvalidInput for no queue and CallRefused where pgmq is older than its notifications or
    cannot tell of this queue.
    """
    with connect(url) as session:
        found = session.execute("select from pgmq.meta where queue_name = %s", (queue,)).fetchone()
        if found is None:  # a row of no columns is as false as none
            raise InvalidInput(f"there is no queue {queue!r}: `fairlease queue create` it")
        if throttle_ms is not None and queue != queue.lower():
            # Its trigger looks for the throttle by the table's name, which is in lower case.
            raise CallRefused(
                f"pgmq does not tell of queue {queue!r}, whose name has capital letters: "
                "it is polled"
            )
        try:
            if throttle_ms is None:
                session.execute("select pgmq.disable_notify_insert(%s)", (queue,))
            else:
                session.execute("select pgmq.enable_notify_insert(%s, %s)", (queue, throttle_ms))
        except psycopg.errors.UndefinedFunction as error:
            raise CallRefused(
                "this pgmq has no throttled notifications: run `alter extension pgmq update`; "
                "until then the queue is polled",
                code=error.sqlstate or "",
            ) from error
