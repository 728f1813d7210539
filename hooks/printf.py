"""printf formatting of a hook's log call: `log.Info("%d found in %s", n, name)` as one line.

Owns the format verbs; pure. Arguments are JSON values, as the prelude sends them: objects arrive as
their JSON text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

_VERB = re.compile(r"%(?:[-+# 0]*+\d*+(?:\.(\d{1,2}))?([sdifjoOvqtcxw])|%)")


def printf(arguments: Sequence[Any]) -> str:
    """Return the arguments as one text. Verbs of the first are filled from the rest (`%s %d %i %f
    %v %j %o %q %x %t %%`; widths are ignored, the precision of `%.2f` is kept), further arguments
    follow after spaces, and a verb without an argument stays as it is."""
    if not arguments:
        return ""
    rest = list(arguments[1:])
    first = arguments[0]
    if not isinstance(first, str):
        return " ".join(_to_text(value) for value in arguments)

    def fill(match: re.Match[str]) -> str:
        verb = match[2]
        if verb is None:
            return "%"
        if not rest:
            return match[0]
        value = rest.pop(0)
        return "" if verb == "c" else _format(verb, match[1], value)

    text = _VERB.sub(fill, first) if rest else first.replace("%%", "%")
    return " ".join([text, *(_to_text(value) for value in rest)])


def _format(verb: str, precision: str | None, value: Any) -> str:
    number = _parse_number(value) if verb in "dif" else None
    if number is not None:
        if verb == "f":
            return f"{number:.{precision}f}" if precision else _to_text(number)
        return str(int(number))
    if verb == "q":
        return json.dumps(_to_text(value), ensure_ascii=False)
    if verb == "x" and isinstance(value, int) and not isinstance(value, bool):
        return f"{value:x}"
    return _to_text(value)


def _parse_number(value: Any) -> float | int | None:
    """Return a finite number, also from text that holds one; None for anything else."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and re.fullmatch(r"\s*[-+]?\d{1,300}(\.\d*)?\s*", value):
        return float(value) if "." in value else int(value)
    return None


def _to_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e21:
        return str(int(value))
    return json.dumps(value, ensure_ascii=False)
