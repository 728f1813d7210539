"""Convert cosines to similarities of 0-1 with a logistic curve for each model.

Cosines of different models are not comparable: unrelated texts have 0.76 with multilingual-e5-small
and 0.1 with OpenAI's newer models. A curve is two numbers: the cosine at which a passage answers
the question with probability one half, and the slope there. `groundhook kb calibrate` measures them
on a collection; docs/embedding-models.md lists which of these curves were measured.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from groundhook.handlers.kb.embed import CurveSource


@dataclass(frozen=True)
class Curve:
    """The cosine `middle` has similarity 0.5, `middle + scale` 0.73, `middle - scale` 0.27.
    `source`: with one that is `guessed`, since nobody measured the model, no passage is omitted and
    no result is sure."""

    middle: float
    scale: float
    source: CurveSource = "measured"

    def similarity(self, cosine: float) -> float:
        return 1 / (1 + math.exp(min(700.0, (self.middle - cosine) / self.scale)))


UNKNOWN = Curve(0.5, 0.08, "guessed")
_CURVES = {  # prefixes of model names; the longest match wins
    "text-embedding-ada": Curve(0.79, 0.02, "published"),
    "text-embedding-3": Curve(0.33, 0.06, "published"),
    "voyage-": Curve(0.45, 0.07, "published"),
    "voyage-context": Curve(0.42, 0.07, "published"),
    "multilingual-e5": Curve(0.835, 0.0236),
    "e5-": Curve(0.80, 0.025, "published"),
}


def curve_of(model: str) -> Curve:
    """Return the curve of a model by its name. An organisation before a `/` is ignored."""
    name = model.lower().rpartition("/")[2]
    fitting = [start for start in _CURVES if name.startswith(start)]
    return _CURVES[max(fitting, key=len)] if fitting else UNKNOWN
