"""What a cosine is worth: for each model, a logistic curve from its cosine to a similarity of 0-1.

Cosines of two models cannot be compared: with multilingual-e5-small unrelated texts have 0.76, with
OpenAI's newer models 0.1. A curve is two numbers, the cosine at which a passage is as likely to
belong to the question as not, and how fast that changes. `groundhook kb calibrate` measures them on
a collection; docs/embedding-models.md says which of these were measured.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Curve:
    """`middle` has similarity 0.5; `scale` further up it is 0.73, `scale` further down 0.27."""

    middle: float
    scale: float

    def similarity(self, cosine: float) -> float:
        return 1 / (1 + math.exp(min(700.0, (self.middle - cosine) / self.scale)))


UNKNOWN = Curve(0.5, 0.08)  # a model that nobody measured
_CURVES = {  # names begin with these; the longest that fits counts
    "text-embedding-ada": Curve(0.79, 0.02),
    "text-embedding-3": Curve(0.33, 0.06),
    "voyage-": Curve(0.45, 0.07),
    "voyage-context": Curve(0.42, 0.07),
    "multilingual-e5": Curve(0.835, 0.0236),
    "e5-": Curve(0.80, 0.025),
}


def curve_of(model: str) -> Curve:
    """The curve of a model by its name, whatever organisation stands before it."""
    name = model.lower().rpartition("/")[2]
    fitting = [start for start in _CURVES if name.startswith(start)]
    return _CURVES[max(fitting, key=len)] if fitting else UNKNOWN
