"""The output of every bench: one JSON object per line on standard output, and nothing else
there."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence


def figure(
    name: str, value: float, unit: str, floor: float | None = None, floor_is: str = ""
) -> None:
    """Print a figure. `floor` is what cannot be beaten on this machine, in the same unit and
    measured in the same run; the ratio to it says more than the figure, which differs from machine
    to machine."""
    line = {
        "figure": name,
        "value": round(value, 3),
        "unit": unit,
        "floor": None if floor is None else round(floor, 3),
        "floor_is": floor_is,
        "ratio": None if not floor else round(value / floor, 2),
    }
    print(json.dumps(line), flush=True)


def quantile(values: Sequence[float], share: float) -> float:
    """Return the least value that at least this share of the values do not exceed."""
    return sorted(values)[math.ceil(share * len(values)) - 1]
