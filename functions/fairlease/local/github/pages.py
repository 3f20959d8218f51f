"""Pagination as GitHub documents it: `per_page` up to 100, `page`, and a `Link` header."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from starlette.responses import JSONResponse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.requests import Request

DEFAULT_PER_PAGE = 30
MAX_PER_PAGE = 100


def paginated(request: Request, items: Sequence[Any]) -> JSONResponse:
    """One page of `items`; garbage in the query counts as absent, as at GitHub."""
    per_page = min(_positive(request, "per_page", DEFAULT_PER_PAGE), MAX_PER_PAGE)
    page = _positive(request, "page", 1)
    last = max(-(-len(items) // per_page), 1)
    links = []
    if page < last:
        links += [_link(request, page + 1, "next"), _link(request, last, "last")]
    if page > 1:
        links += [_link(request, 1, "first"), _link(request, min(page - 1, last), "prev")]
    headers = {"link": ", ".join(links)} if links else {}
    start = (page - 1) * per_page
    return JSONResponse(list(items[start : start + per_page]), headers=headers)


def _positive(request: Request, name: str, default: int) -> int:
    text = request.query_params.get(name, "")
    value = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0  # noqa: PLR2004
    return value or default


def _link(request: Request, page: int, relation: str) -> str:
    return f'<{request.url.include_query_params(page=page)}>; rel="{relation}"'
