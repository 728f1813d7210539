"""The content of `*.api.yao`: an HTTP API whose answers are sources. Pure.

Texts of the file have placeholders, `{{ question }}`; `fill` replaces them. There is no code in
them: what is sent is decided by the file and the values below.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal
from urllib.parse import quote, urlsplit

from pydantic import AfterValidator, AliasChoices, Field, ValidationInfo, field_validator

from groundhook.core.errors import NotPermitted, UsageError, suggestion
from groundhook.core.types.base import Few, Value, defaults_of
from groundhook.core.types.serialisation import DeclaredHost, Headers, web_address

IDENTITY = ("user_id", "team_id", "tenant_id")  # a request without that id is refused
PLACEHOLDERS = ("question", "limit", "locale", *IDENTITY)

_PLACEHOLDER = re.compile(r"\{\{([^{}]*+)\}\}")


def _check_template(value: Any) -> Any:
    """Return the value if all placeholders in its texts are known. Raises ValueError."""
    for text in texts(value):
        for name in map(str.strip, _PLACEHOLDER.findall(text)):
            if name not in PLACEHOLDERS:
                hint = suggestion(name, PLACEHOLDERS)
                raise ValueError(f"there is no placeholder {name!r} ({hint})")
        if re.search(r"\{\{|\}\}", _PLACEHOLDER.sub("", text)):
            raise ValueError("a placeholder is written {{ name }}, closed in the same text")
    return value


class ApiFields(Value):
    """The paths of an item's parts in an entry of the answer, such as `links.0.href`."""

    id: str = Field(default="", description="Id of the entry, which keeps its citation id stable")
    title: str = ""
    content: Few[tuple[str, ...]] = Field(
        default=(), description="Text of the item, several paths line by line; empty: all values"
    )
    url: str = ""


class ApiSpec(Value):
    """An HTTP API that a message may refer to, as `{type: "api", name}`. `id` follows from the
    file's path."""

    id: str = ""
    label: str = Field(default="", validation_alias=AliasChoices("label", "name"))
    description: str = ""
    url: str = Field(
        description="Address, such as `https://host/orders`; its path may have placeholders"
    )
    method: Literal["GET", "POST"] = "GET"
    query: Annotated[dict[str, str | int | float | bool], AfterValidator(_check_template)] = Field(
        default={}, description="Parameters after the `?`; values may have placeholders"
    )
    headers: Annotated[Headers, AfterValidator(_check_template)] = Field(
        default={}, description="Headers; values may have placeholders and `$ENV.NAME`"
    )
    body: Annotated[Any, AfterValidator(_check_template)] = Field(
        default=None,
        description="JSON of a POST; its texts may have placeholders",
        validate_default=True,
    )
    items: str = Field(
        default="", description="Path of the list in the answer, such as `data.rows`; empty: all"
    )
    fields: ApiFields = defaults_of(ApiFields)
    max_results: int = Field(default=10, ge=1, le=1000, description="Maximum items of one answer")
    timeout_ms: int = Field(
        default=5000, ge=1, description="Deadline of the request with its redirects"
    )
    max_kb: int = Field(default=1024, ge=1, description="Largest answer, after decompression")
    hosts: tuple[DeclaredHost, ...] = Field(
        default=(),
        description=(
            "Hosts that it may reach besides that of `url`: targets of redirects, and `10.0.0.0/8`"
            " where a name resolves to a private address"
        ),
    )

    @field_validator("url")
    @classmethod
    def _address(cls, url: str) -> str:
        _check_template(url)
        if not url:
            raise ValueError("should be an http(s) address, such as 'https://host/orders'")
        if "{{" in url.partition("://")[2].partition("/")[0] or "{{" in url.partition("?")[2]:
            raise ValueError("placeholders belong in the path and in 'query'")
        web_address(_PLACEHOLDER.sub("x", url))
        return url

    @field_validator("body")
    @classmethod
    def _of_a_post(cls, body: Any, info: ValidationInfo) -> Any:
        if body is not None and info.data.get("method") == "GET":
            raise ValueError("a GET has no body (use method: 'POST', or 'query')")
        return body

    @property
    def host(self) -> str:
        """The host and port of `url`, as `hosts` would declare them."""
        return urlsplit(self.url).netloc


def texts(value: Any) -> list[str]:
    """Return the texts in a value, at any depth."""
    match value:
        case str():
            return [value]
        case Mapping():
            return [text for each in value.values() for text in texts(each)]
        case list() | tuple():
            return [text for each in value for text in texts(each)]
        case _:
            return []


def fill(value: Any, values: Mapping[str, str | int]) -> Any:
    """Return the value with the placeholders in its texts filled. A text that is one placeholder
    alone becomes the value itself, so that a number stays one. Raises NotPermitted where the
    request lacks an id of the identity."""
    match value:
        case str():
            alone = _PLACEHOLDER.fullmatch(value)
            return (
                _find_value(alone[1].strip(), values) if alone else _fill_text(value, values, str)
            )
        case Mapping():
            return {key: fill(each, values) for key, each in value.items()}
        case list() | tuple():
            return [fill(each, values) for each in value]
        case _:
            return value


def fill_address(url: str, values: Mapping[str, str | int]) -> str:
    """Return the address with the placeholders of its path percent-encoded. Raises NotPermitted as
    `fill` does, and UsageError for a value that would lead to another path."""
    filled = _fill_text(url, values, lambda value: quote(value, safe=""))
    if {".", ".."} & set(filled.split("/")):
        raise UsageError("'.' and '..' cannot be a part of the address")
    return filled


def _fill_text(text: str, values: Mapping[str, str | int], encoded: Callable[[str], str]) -> str:
    return _PLACEHOLDER.sub(lambda found: encoded(str(_find_value(found[1].strip(), values))), text)


def _find_value(name: str, values: Mapping[str, str | int]) -> str | int:
    value = values[name]
    if name in IDENTITY and not value:
        raise NotPermitted(f"the request has no {name}, which this API needs")
    return value
