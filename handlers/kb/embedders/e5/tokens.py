"""The tokenizer of multilingual-e5-small: a text's pieces by the unigram model, over the vocabulary
that lies in the file of weights.

Words are cut one by one, so that each is computed once while it is remembered: 5 µs a token of
ordinary text. The ids are those of the model's own engine.
"""

from __future__ import annotations

import re
from functools import lru_cache

from groundhook.handlers.kb.embedders.e5.file import ModelFile

_BLANK = "\u2581"  # begins a piece that begins a word
_BLANKS = re.compile("  +")
_REMEMBERED, _LONGEST_REMEMBERED = 1 << 16, 64  # words, and characters of one
_AT_ONCE = 1 << 14  # characters of a word that are cut together: memory grows with them
_UNKNOWN_PENALTY = 10.0  # an unknown character is so much less likely than the rarest piece


class Tokens:
    """Usable from any thread."""

    def __init__(self, file: ModelFile) -> None:
        pieces = file.pieces()
        self._pieces = dict(zip(pieces, range(len(pieces)), strict=True))
        del self._pieces[pieces[file.unknown]]
        self._scores = file.scores.tolist()
        self._normalisation = file.normalisation
        self._unknown = file.unknown
        self._unknown_score = float(file.scores.min()) - _UNKNOWN_PENALTY
        self._longest = max(map(len, pieces))
        self._remembered = lru_cache(_REMEMBERED)(self._cut)

    def ids(self, text: str) -> list[int]:
        """Without the two ids that mark the beginning and the end of a text."""
        plain = _BLANKS.sub(" ", text.translate(self._normalisation))
        ids: list[int] = []
        for word in plain.removeprefix(" ").split(" "):
            marked = _BLANK + word
            if len(marked) <= _LONGEST_REMEMBERED:
                ids += self._remembered(marked)
            else:
                for start in range(0, len(marked), _AT_ONCE):
                    ids += self._cut(marked[start : start + _AT_ONCE])
        return ids

    def _cut(self, word: str) -> tuple[int, ...]:
        """The likeliest pieces that make up the word (Viterbi)."""
        pieces, scores, longest = self._pieces.get, self._scores, self._longest
        size = len(word)
        best = [0.0] + [float("-inf")] * size
        last = [(0, 0)] * (size + 1)  # of the best way to a place: where its last piece begins, id
        for start in range(size):
            so_far = best[start]
            for stop in range(start + 1, min(size, start + longest) + 1):
                id = pieces(word[start:stop])
                if id is not None and so_far + scores[id] > best[stop]:
                    best[stop] = so_far + scores[id]
                    last[stop] = (start, id)
            if so_far + self._unknown_score > best[start + 1]:
                best[start + 1] = so_far + self._unknown_score
                last[start + 1] = (start, self._unknown)
        ids = []
        place = size
        while place:
            place, id = last[place]
            ids.append(id)
        return tuple(reversed(ids))
