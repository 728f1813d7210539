"""JSON as it crosses between V8 and the host: what one side writes, made sound for the other.

A hook decides what `JSON.stringify` makes of its values; this module decides what of that the host
takes. Pure.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from groundhook.host.core.json_text import DEEPEST, is_deeper
from groundhook.host.core.types.base import well_formed

TOO_DEEP = "nested too deeply"


def to_v8(value: Any) -> str:
    """JSON that V8 reads: NaN and infinities become null."""
    try:
        return json.dumps(value, allow_nan=False)
    except ValueError:
        return json.dumps(_finite(value), allow_nan=False)


def from_v8(text: str) -> Any:
    """The value of JSON that a hook wrote; half a surrogate pair, which no other part of the host
    can encode, becomes U+FFFD. Raises ValueError, whose message completes "it is …", for what is no
    JSON and for what is nested too deeply."""
    try:
        value = json.loads(text)
    except RecursionError:
        raise ValueError(TOO_DEEP) from None
    except ValueError as exc:
        raise ValueError("no JSON that the host can read") from exc
    if text.count("[") + text.count("{") > DEEPEST and is_deeper(value):
        raise ValueError(TOO_DEEP)
    return well_formed(value) if "\\ud" in text else value


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {key: _finite(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(entry) for entry in value]
    return value
