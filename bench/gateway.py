"""`python -m bench.gateway`: a trivial call through the gateway, beside the same done directly.

The direct one is begin, set role, claims and method, call, commit over psycopg, one statement after
the other. Both are measured in turns, so that other load hits both; the goal is a ratio of 3 at
most. Then 200 calls at once, none of which may fail.
"""

from __future__ import annotations

import http.client
import json
import statistics
import subprocess
import sys
import threading
import time
from collections import Counter
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import jwt
import psycopg

from fairlease.local.bootstrap import bootstrap
from fairlease.local.postgres import LocalPostgres

if TYPE_CHECKING:
    from collections.abc import Callable

SECRET = "super-secret-jwt-token-with-at-least-32-characters-long"
CALLS = 1000
WARM_UP = 200
AT_ONCE = 200
GOAL = 3.0
PING = "create function public.ping(a int) returns int language sql as 'select a'"
CLAIMS = json.dumps({"role": "service_role"})
SETTINGS = (
    "select set_config('request.jwt.claims', %s, true), set_config('request.method', 'POST', true)"
)


def direct(connection: psycopg.Connection) -> None:
    cursor = connection.cursor()
    cursor.execute("begin")
    cursor.execute("set local role service_role")
    cursor.execute(SETTINGS, [CLAIMS])
    cursor.execute("select public.ping(a => %s)", [1])
    assert cursor.fetchone() == (1,)
    cursor.execute("commit")


def headers() -> dict[str, str]:
    token = jwt.encode({"role": "service_role", "exp": 4102444800}, SECRET)
    return {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}


def through(client: http.client.HTTPConnection, sent: dict[str, str]) -> int:
    client.request("POST", "/rest/v1/rpc/ping", b'{"a": 1}', sent)
    response = client.getresponse()
    response.read()
    return response.status


def seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def in_turns(one: Callable[[], object], other: Callable[[], object]) -> tuple[float, float]:
    for _ in range(WARM_UP):
        one()
        other()
    pairs = [(seconds(one), seconds(other)) for _ in range(CALLS)]
    return statistics.median(p[0] for p in pairs), statistics.median(p[1] for p in pairs)


def at_once(host: str, port: int, sent: dict[str, str]) -> Counter[int]:
    statuses: Counter[int] = Counter()
    gate = threading.Barrier(AT_ONCE)

    def call() -> None:
        client = http.client.HTTPConnection(host, port, timeout=60)
        gate.wait()
        statuses[through(client, sent)] += 1
        client.close()

    threads = [threading.Thread(target=call) for _ in range(AT_ONCE)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return statuses


def main() -> int:
    with LocalPostgres(settings={"fsync": "off"}) as server:
        bootstrap(server)
        with psycopg.connect(server.url(), autocommit=True) as owner:
            owner.execute(PING)
        url = server.url(user="authenticator")
        command = [sys.executable, "-m", "fairlease.local.gateway"]
        options = ["--database-url", url, "--jwt-secret", SECRET]
        with subprocess.Popen([*command, *options], stdout=subprocess.PIPE, text=True) as gateway:
            try:
                assert gateway.stdout is not None
                return measure(url, gateway.stdout.readline().split()[1])
            finally:
                gateway.terminate()


def measure(database_url: str, gateway_url: str) -> int:
    address = urlsplit(gateway_url)
    host, port, sent = address.hostname or "", address.port or 0, headers()
    client = http.client.HTTPConnection(host, port)
    with psycopg.connect(database_url, autocommit=True) as connection:
        gateway_median, direct_median = in_turns(
            lambda: through(client, sent), lambda: direct(connection)
        )
    client.close()
    ratio = gateway_median / direct_median
    print(f"direct   {direct_median * 1e6:6.0f} us, median of {CALLS}")
    print(f"gateway  {gateway_median * 1e6:6.0f} us")
    print(f"ratio    {ratio:6.2f}    goal: at most {GOAL:.0f}")
    statuses = at_once(host, port, sent)
    print(f"{AT_ONCE} at once: {dict(statuses)}")
    return 0 if ratio <= GOAL and statuses == {200: AT_ONCE} else 1


if __name__ == "__main__":
    sys.exit(main())
