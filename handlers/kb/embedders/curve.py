"""Convert cosines to similarities of 0-1 with a logistic curve for each model.

Cosines of different models are not comparable: unrelated texts have 0.76 with multilingual-e5-small
and 0.1 with OpenAI's newer models. A curve is two numbers: the cosine at which a passage answers
the question with probability one half, and the slope there. `groundhook kb calibrate` measures them
on a collection; docs/embedding-models.md lists which of these curves were measured.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Curve:
    """The cosine `middle` has similarity 0.5, `middle + scale` 0.73, `middle - scale` 0.27.
    `guessed`: nobody measured the model, so that no passage is omitted and no result is sure by
    it."""

    middle: float
    scale: float
    guessed: bool = False

    def similarity(self, cosine: float) -> float:
        return 1 / (1 + math.exp(min(700.0, (self.middle - cosine) / self.scale)))


UNKNOWN = Curve(0.5, 0.08, guessed=True)  # for models that were not measured
_CURVES = {  # prefixes of model names; the longest match wins
    "text-embedding-ada": Curve(0.79, 0.02),
    "text-embedding-3": Curve(0.33, 0.06),
    "voyage-": Curve(0.45, 0.07),
    "voyage-context": Curve(0.42, 0.07),
    "multilingual-e5": Curve(0.835, 0.0236),
    "e5-": Curve(0.80, 0.025),
}


def curve_of(model: str) -> Curve:
    """Return the curve of a model by its name. An organisation before a `/` is ignored."""
    name = model.lower().rpartition("/")[2]
    fitting = [start for start in _CURVES if name.startswith(start)]
    return _CURVES[max(fitting, key=len)] if fitting else UNKNOWN
