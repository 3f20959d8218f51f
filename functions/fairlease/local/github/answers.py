"""Errors with GitHub's bodies: `message`, `errors`, `documentation_url`, `status`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from starlette.responses import JSONResponse

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

DOCS = "https://docs.github.com/rest"


class ApiError(Exception):
    """An answer of 4xx; raised by an endpoint, rendered once by the gate."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        errors: Sequence[Any] = (),
        documentation: str = DOCS,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.body: dict[str, Any] = {"message": message}
        if errors:
            self.body["errors"] = list(errors)
        self.body |= {"documentation_url": documentation, "status": str(status)}
        self.headers = dict(headers or {})

    def response(self) -> JSONResponse:
        return JSONResponse(self.body, status_code=self.status, headers=self.headers)


def not_found() -> ApiError:
    return ApiError(404, "Not Found")


def archived() -> ApiError:
    return ApiError(
        403,
        "Repository was archived so is read-only.",
        documentation=f"{DOCS}/repos/repos#update-a-repository",
    )


def name_taken() -> ApiError:
    return ApiError(
        422,
        "Repository creation failed.",
        errors=[
            {
                "resource": "Repository",
                "code": "custom",
                "field": "name",
                "message": "name already exists on this account",
            }
        ],
        documentation=f"{DOCS}/repos/repos#create-an-organization-repository",
    )


def clone_name_taken() -> ApiError:
    text = "Could not clone: Name already exists on this account"
    return ApiError(
        422,
        text,
        errors=[text],
        documentation=f"{DOCS}/repos/repos#create-a-repository-using-a-template",
    )


def invalid(resource: str, field: str, code: str, message: str = "") -> ApiError:
    """422 with one entry in `errors`; `code` is GitHub's: missing_field, invalid, custom, ..."""
    entry = {"resource": resource, "field": field, "code": code}
    if message:
        entry["message"] = message
    return ApiError(422, "Validation Failed", errors=[entry])
