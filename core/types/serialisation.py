"""Types of texts in files: addresses, hosts, names of variables and headers, language tags. Pure.

The annotated types are for fields of models, whose errors have file and line.
"""

from __future__ import annotations

import re
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, WithJsonSchema

from groundhook.core.types.hosts import parse_host_rule

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # RFC 9110, section 5.6.2
_LANGUAGE = re.compile(  # RFC 5646, section 2.1, without the subtags reserved for the future
    r"[a-z]{2,3}(-[a-z]{3}){0,3}(-[a-z]{4})?(-([a-z]{2}|[0-9]{3}))?(-([a-z0-9]{5,8}|[0-9][a-z0-9]{3}))*"
    r"(-[a-wyz0-9](-[a-z0-9]{2,8})+)*(-x(-[a-z0-9]{1,8})+)?|x(-[a-z0-9]{1,8})+",
    re.IGNORECASE,
)


def web_address(text: str) -> str:
    """Return `text` if it is empty or an http(s) address. Raises ValueError with a message for the
    author."""
    wanted = "should be an http(s) address, such as 'https://host:8443/path'"
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as exc:
        raise ValueError(f"{wanted}: {str(exc)[:1].lower()}{str(exc)[1:]}") from None
    fits = (
        parts.scheme in ("http", "https")
        and parts.hostname
        and port != 0
        and not re.search(r"\s", text)
    )
    if text and not fits:
        raise ValueError(wanted)
    return text


_PART_OF_TIME = re.compile(r"(\d{1,15}(?:\.\d{1,15})?)(ms|s|m|h)")
_SECONDS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600}


def _parse_seconds(value: Any) -> Any:
    """Return a time such as `30s`, `500ms` or `1m30s` in seconds; anything else as it is."""
    parts = _PART_OF_TIME.findall(value) if isinstance(value, str) else []
    if not parts or "".join(map("".join, parts)) != value:
        return value
    return sum(float(number) * _SECONDS[unit] for number, unit in parts)


Seconds = Annotated[
    float,
    BeforeValidator(_parse_seconds),
    WithJsonSchema({"anyOf": [{"type": "number", "exclusiveMinimum": 0}, {"type": "string"}]}),
]


def is_language_tag(text: str) -> bool:
    """Return whether a text has the form of BCP 47, in any case: `en`, `pt-BR`, `zh-Hant-TW`."""
    return _LANGUAGE.fullmatch(text) is not None


def no_language_tag(text: str) -> str:
    """Return the message for a text that is not a language tag."""
    dashed = text.replace("_", "-").partition(".")[0]
    meant = f"; did you mean {dashed}?" if dashed != text and is_language_tag(dashed) else ""
    return f"{text!r} is not a language tag such as en or pt-BR (BCP 47){meant}"


def _check_host(text: str) -> str:
    parse_host_rule(text)
    return text


def _check_variable(text: str) -> str:
    if text and not _VARIABLE.fullmatch(text):
        raise ValueError(
            "should be the name of a variable that holds the key, such as MY_API_KEY, not the key"
            " itself"
        )
    return text


def _check_headers(headers: dict[str, str]) -> dict[str, str]:
    for name, value in headers.items():
        if not _TOKEN.fullmatch(name):
            raise ValueError(f"{name!r} cannot be the name of a header")
        if re.search(r"[\r\n\0]", value):
            raise ValueError(f"the header {name!r} has more than one line")
    return headers


def _check_variables(variables: dict[str, str]) -> dict[str, str]:
    for name, value in variables.items():
        if not name or "=" in name or "\0" in name + value:
            raise ValueError(f"{name!r} cannot be the name of a variable, or its value has a NUL")
    return variables


DeclaredHost = Annotated[str, AfterValidator(_check_host)]
WebAddress = Annotated[str, AfterValidator(web_address)]
VariableName = Annotated[str, AfterValidator(_check_variable)]
Headers = Annotated[dict[str, str], AfterValidator(_check_headers)]
Variables = Annotated[dict[str, str], AfterValidator(_check_variables)]
