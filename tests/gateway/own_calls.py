"""Calls of our own, and how PostgREST's rules say that they are answered."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

SETUP = """
create table public.job (id int primary key, org text, doc jsonb);
insert into public.job values (1, 'a', '{"n": 1}'), (2, 'b', '{"n": 2}'), (3, null, null);
create function public.jobs() returns setof public.job stable language sql
  as 'select * from public.job order by id';
create function public.first_job() returns public.job stable language sql
  as 'select * from public.job order by id limit 1';
create function public.add(a int, b int default 10) returns int immutable language sql
  as 'select a + b';
create function public.sum_of(variadic n int[]) returns bigint stable language sql
  as 'select sum(x) from unnest(n) x';
create function public.echo(jsonb) returns jsonb language sql as 'select $1';
create function public.shout(text) returns text language sql as 'select upper($1)';
create function public.pair(inout a int, out b text) language sql as $$select a + 1, 'x'$$;
create function public.nothing(a int) returns void language sql as '';
create function public.refuse(code text, text text, detail text default null) returns int
  language plpgsql as $$begin
    if detail is null then
      raise exception using errcode = code, message = text;
    end if;
    raise exception using errcode = code, message = text, detail = detail;
  end$$;
create function public.setting(name text) returns text language sql
  as 'select current_setting(name, true)';
create domain public."text/html" as text;
create domain public."*/*" as bytea;
create function public.page() returns public."text/html" language sql as $$select 'null'$$;
create function public.image() returns public."*/*" language sql as $$select '\\x4749'::bytea$$;
create function public.stable_setting(name text) returns text stable language sql
  as 'select current_setting(name, true)';
create function public.accepted() returns text language sql
  as $$select set_config('response.status', '202', true)$$;
create function public.over(a int) returns text language sql as $$select 'one'$$;
create function public.over(a int, b text default '') returns text language sql
  as $$select 'two'$$;
"""


@dataclass(frozen=True)
class Call:
    """`body` text is sent as it is, anything else as JSON."""

    function: str
    status: int
    answer: Any
    body: Any = field(default_factory=dict)
    method: str = "POST"
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        extra = "".join(f" {value}" for value in self.headers.values())
        return f"{self.method} {self.function} {self.body if self.method == 'POST' else ''}{extra}"


def error(code: str, message: str, details: str | None = None, hint: str | None = None) -> Any:
    return {"code": code, "message": message, "details": details, "hint": hint}


def no_function(called: str, searched: str, hint: str | None = None) -> Any:
    return error(
        "PGRST202",
        f"Could not find the function public.{called} in the schema cache",
        f"Searched for the function public.{searched}, but no matches were found in the schema "
        "cache.",
        hint and f"Perhaps you meant to call the function public.{hint}",
    )


def get(path: str, status: int, answer: Any, **headers: str) -> Call:
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    return Call(path, status, answer, method="GET", headers=sent)


OR_WHOLE_BODY = " or with a single unnamed json/jsonb parameter"
PLAIN, FORM, CSV = (
    {"Content-Type": kind}
    for kind in ("text/plain", "application/x-www-form-urlencoded", "text/csv")
)
ONE = {"id": 1, "org": "a", "doc": {"n": 1}}
TWO = {"id": 2, "org": "b", "doc": {"n": 2}}
THREE = {"id": 3, "org": None, "doc": None}

ARGUMENTS = [
    Call("add", 200, 3, {"b": 2, "a": 1}),
    Call("add", 200, 11, {"a": "1"}),
    Call("add", 200, None, {"a": 1, "b": None}),
    Call("add", 200, 11, [{"a": 1}, {"a": 5}]),
    Call("add", 400, error("22P02", 'invalid input syntax for type integer: "1.0"'), '{"a": 1.0}'),
    Call("add", 400, error("PGRST102", "All object keys must match"), [{"a": 1}, {"b": 1}]),
    Call("add", 400, error("PGRST102", "Empty or invalid json"), " "),
    Call("add", 400, error("PGRST102", "Empty or invalid json"), '{"a": Infinity}'),
    Call("add", 200, 12, "a=2", headers=FORM),
    Call("add", 200, 14, "a,b\n4,10\n5,5\n", headers=CSV),
    Call("add?columns=a", 200, 11, {"a": 1, "b": 2, "junk": 3}),
    Call("sum_of", 200, 6, {"n": [1, 2, 3]}),
    get("sum_of?n=1&n=2", 200, 3),
    Call("sum_of", 200, 7, "n=3&n=4", headers=FORM),
    Call("echo", 200, [{"a": 1}], [{"a": 1}]),
    Call("echo", 200, [], "5"),
    Call("shout", 200, "HI", "hi", headers=PLAIN),
    Call("pair", 200, {"a": 2, "b": "x"}, {"a": 1}),
    Call("nothing", 204, None, {"a": 1}),
]
RESOLUTION = [
    Call(
        "add",
        404,
        no_function("add(z)", f"add with parameter z{OR_WHOLE_BODY}"),
        {"z": 1},
    ),
    Call(
        "add",
        404,
        no_function("add(a, c)", f"add with parameters a, c{OR_WHOLE_BODY}", "add(a, b)"),
        {"c": 1, "a": 1},
    ),
    get("add", 404, no_function("add without parameters", "add without parameters")),
    Call("ad", 404, no_function("ad without parameters", f"ad without parameters{OR_WHOLE_BODY}")),
    Call(
        "firstjob",
        404,
        no_function(
            "firstjob without parameters",
            f"firstjob without parameters{OR_WHOLE_BODY}",
            "first_job",
        ),
    ),
    Call(
        "add",
        404,
        no_function("add", "add with a single unnamed text parameter"),
        "x",
        headers=PLAIN,
    ),
    Call(
        "over",
        300,
        error(
            "PGRST203",
            "Could not choose the best candidate function between: public.over(a => integer), "
            "public.over(a => integer, b => text)",
            hint="Try renaming the parameters or the function itself in the database so function "
            "overloading can be resolved",
        ),
        {"a": 1},
    ),
    Call("over", 200, "two", {"a": 1, "b": "x"}),
]
RESULTS = [
    Call("jobs", 200, [ONE, TWO, THREE]),
    Call("first_job", 200, ONE),
    Call("jobs?select=org,n:doc->n&id=lt.3", 200, [{"org": "a", "n": 1}, {"org": "b", "n": 2}]),
    Call("jobs?order=org.desc.nullslast,id&limit=2", 200, [TWO, ONE]),
    Call("jobs?or=(id.eq.1,org.is.null)", 200, [ONE, THREE]),
    Call("jobs?org=in.(a,%22b%22)&offset=1", 200, [TWO]),
    Call("jobs?id=not.in.(1,2)&select=id::text", 200, [{"id": "3"}]),
    Call("jobs?doc->>n=eq.2&select=id", 200, [{"id": 2}]),
    Call("jobs?limit=0", 200, []),
    Call(
        "jobs?limit=-1",
        416,
        error(
            "PGRST103",
            "Requested range not satisfiable",
            "Limit should be greater than or equal to zero.",
        ),
    ),
    Call(
        "jobs?select=id,owner(*)",
        400,
        error(
            "PGRST200",
            "Could not find a relationship between 'job' and 'owner' in the schema cache",
            "Searched for a foreign key relationship between 'job' and 'owner' in the schema "
            "'public', but no matches were found.",
        ),
    ),
    get("jobs", 200, [TWO], Range="1-1"),
    get("jobs?limit=1", 206, [ONE], Prefer="count=exact"),
    Call("jobs", 200, "id\n1\n2\n3", headers={"Accept": "text/csv", "X-Query": "select=id"}),
    Call("first_job", 200, ONE, headers={"Accept": "application/vnd.pgrst.object+json"}),
    Call(
        "jobs",
        406,
        error(
            "PGRST116",
            "Cannot coerce the result to a single JSON object",
            "The result contains 3 rows",
        ),
        headers={"Accept": "application/vnd.pgrst.object+json"},
    ),
    Call(
        "jobs?id=eq.9",
        406,
        error(
            "PGRST116",
            "Cannot coerce the result to a single JSON object",
            "The result contains 0 rows",
        ),
        headers={"Accept": "application/vnd.pgrst.object+json"},
    ),
    Call(
        "jobs",
        406,
        error("PGRST107", "None of these media types are available: image/png"),
        headers={"Accept": "image/png"},
    ),
    # As it is, which happens to be JSON; and as a JSON string.
    Call("page", 200, None, headers={"Accept": "text/html"}),
    Call("page", 200, "null", headers={"Accept": "application/json"}),
    Call("image", 200, "GI", headers={"Accept": "image/gif"}),
]
ANSWERS = [
    Call("accepted", 202, "202"),
    Call("refuse", 404, error("42P01", "no queue"), {"code": "42P01", "text": "no queue"}),
    Call("refuse", 503, error("53300", "full"), {"code": "53300", "text": "full"}),
    Call(
        "refuse",
        418,
        error("PT418", "tea", "pot"),
        {"code": "PT418", "text": "tea", "detail": "pot"},
    ),
    Call("refuse", 401, error("42501", "no"), {"code": "42501", "text": "no"}),
    Call(
        "refuse",
        402,
        error("1", "pay", "d"),
        {
            "code": "PGRST",
            "text": '{"code": "1", "message": "pay", "details": "d"}',
            "detail": '{"status": 402, "headers": {}}',
        },
    ),
    Call("setting", 200, "/rpc/setting", {"name": "request.path"}),
    Call("setting", 200, "POST", {"name": "request.method"}),
    Call("setting", 200, '{"role":"anon"}', {"name": "request.jwt.claims"}),
    Call(
        "setting",
        200,
        '{"a":"1","b":"2"}',
        {"name": "request.cookies"},
        headers={"Cookie": "a=1; b=2"},
    ),
    Call(
        "setting",
        200,
        "Europe/Rome",
        {"name": "timezone"},
        headers={"Prefer": "timezone=Europe/Rome"},
    ),
    get("setting?name=transaction_read_only", 200, "on"),
    Call("setting", 200, "off", {"name": "transaction_read_only"}),
    Call("stable_setting", 200, "on", {"name": "transaction_read_only"}),
    Call(
        "accepted",
        400,
        error(
            "PGRST122",
            "Invalid preferences given with handling=strict",
            "Invalid preferences: speed=high",
        ),
        headers={"Prefer": "handling=strict, speed=high"},
    ),
    Call(
        "accepted",
        406,
        error(
            "PGRST106",
            "Invalid schema: nope",
            hint="Only the following schemas are exposed: public, pgmq_public",
        ),
        headers={"Content-Profile": "nope"},
    ),
    Call("a/b", 404, error("PGRST125", "Invalid path specified in request URL")),
    Call("add", 405, error("PGRST101", "Cannot use the PUT method on RPC"), method="PUT"),
]
CALLS = [*ARGUMENTS, *RESOLUTION, *RESULTS, *ANSWERS]
