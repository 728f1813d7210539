"""JSON between V8 and the host, made safe for the other side.

A hook decides what `JSON.stringify` makes of its values; this module decides what the host accepts
of that. Pure.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from groundhook.core.json_text import NestedTooDeeply, NotJson, read_json
from groundhook.core.types.base import well_formed

TOO_DEEP = "nested too deeply"


def to_v8(value: Any) -> str:
    """Return JSON that V8 can parse: NaN and infinities become null."""
    try:
        return json.dumps(value, allow_nan=False)
    except ValueError:
        return json.dumps(_replace_infinite(value), allow_nan=False)


def from_v8(text: str) -> Any:
    """Return the value of JSON that a hook wrote. Half a surrogate pair, which UTF-8 cannot encode,
    becomes U+FFFD. Raises ValueError for text that is not JSON or is nested too deeply; its message
    completes "it is …"."""
    try:
        value = read_json(text)
    except NestedTooDeeply:
        raise ValueError(TOO_DEEP) from None
    except NotJson as exc:
        raise ValueError("not JSON that the host can read") from exc
    return well_formed(value) if "\\ud" in text else value


def _replace_infinite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {key: _replace_infinite(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_replace_infinite(entry) for entry in value]
    return value
