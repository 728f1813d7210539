"""Citations: stable ids for sources, and the reader that checks the markers in a streamed answer.

An id derives from what a source *is* (`Item.key`), so the same source has the same id in every turn and on every run.
The reader is a fold over text: any splitting of the same answer into pieces gives the same text and the same markers.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from host.types.events import Cited, Verdict
from host.types.search import Item

SHORTEST = 4
LONGEST = 32  # an id beyond this many characters is text, not a marker
DISTINCTIVE = 3  # a marker's prefix of this many characters does not occur in text by chance

_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})")
_LINE_KEPT = 16  # characters of a line's beginning that decide whether it is a fence


def short_id(key: str, length: int = SHORTEST) -> str:
    """`length` characters of a-z and 2-7 that stand for `key`; the first four hold a letter and a digit, so that
    no English word and no year is an id. A longer id begins with the shorter one."""
    text = base64.b32encode(hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()).decode("ascii").rstrip("=").lower()
    text += text
    for start in range(len(text) // 2):
        head = text[start : start + SHORTEST]
        if not head.isalpha() and not head.isdigit():
            return text[start : start + length]
    return "a2" + text[: length - 2]


@dataclass
class Book:
    """The sources that one turn has offered. Ids are unique in a turn: where two sources would share one, the later
    gets a longer id."""

    format: str
    _ids: dict[str, str] = field(default_factory=dict)  # key → id
    _items: dict[str, Item] = field(default_factory=dict)  # id → item

    def cite(self, item: Item) -> Item:
        """The item with its marker set as `citation_id`."""
        id = self._ids.get(item.key) or self._new_id(item.key)
        cited = item.model_copy(update={"citation_id": self.marker(id)})
        self._items[id] = cited
        return cited

    def marker(self, id: str) -> str:
        return self.format.replace("{id}", id)

    def reformat(self, format: str) -> None:
        """Write markers in another format from now on; ids stay."""
        self.format = format

    def find(self, id: str) -> Item | None:
        """The item behind an id, in whichever case the model wrote it."""
        return self._items.get(id.lower())

    def _new_id(self, key: str) -> str:
        for length in range(SHORTEST, LONGEST):
            id = short_id(key, length)
            if id not in self._items:
                self._ids[key] = id
                return id
        raise ValueError(f"no free citation id for {key!r}")


# ------------------------------------------------------------------------------------------------ reading answers


@dataclass(frozen=True)
class Plain:
    """Text without a marker."""

    text: str


@dataclass(frozen=True)
class Marker:
    """A marker in the answer: as written, and the id in it."""

    text: str
    id: str


Piece = Plain | Marker


@dataclass(frozen=True)
class Reading:
    """Where the reader stands: `held` may be the beginning of a marker, `line` is how the current line begins,
    `fence` is the open code fence."""

    held: str = ""
    line: str = ""
    fence: str = ""


@dataclass(frozen=True)
class Grammar:
    """What a marker looks like under one `citation.format`."""

    prefix: str
    suffix: str
    pattern: re.Pattern[str]

    @staticmethod
    def of(format: str) -> Grammar:
        prefix, _, suffix = format.partition("{id}")
        if len(prefix.strip()) >= DISTINCTIVE:
            id = rf"[A-Za-z0-9]{{1,{LONGEST}}}"
        else:  # `[note]` and `[2024]` are text: an id holds a letter and a digit
            id = rf"(?=[A-Za-z0-9]*[A-Za-z])(?=[A-Za-z0-9]*[0-9])[A-Za-z0-9]{{{SHORTEST},{LONGEST}}}"
        return Grammar(prefix, suffix, re.compile(re.escape(prefix) + f"({id})" + (re.escape(suffix) or "(?![A-Za-z0-9])")))

    def could_begin(self, text: str) -> bool:
        """Whether `text` may be the beginning of a marker whose rest has not come yet."""
        if len(text) <= len(self.prefix):
            return self.prefix.startswith(text)
        if not text.startswith(self.prefix):
            return False
        body = text[len(self.prefix) :]
        id = re.match(r"[A-Za-z0-9]*", body)
        assert id is not None
        if len(id[0]) > LONGEST:
            return False
        rest = body[id.end() :]
        return rest == "" or (len(rest) < len(self.suffix) and self.suffix.startswith(rest))

    @property
    def reach(self) -> int:
        """How many characters an unfinished marker can have."""
        return len(self.prefix) + LONGEST + len(self.suffix)


def read(reading: Reading, text: str, grammar: Grammar, *, last: bool = False) -> tuple[Reading, list[Piece]]:
    """Read more of an answer. What may still become a marker is held back until the next call or the `last`."""
    pieces: list[Piece] = []
    state = replace(reading, held="")
    for line in _lines(reading.held + text):
        ended = line.endswith("\n")
        state, found, held = _read_line(state, line, grammar, last=last or ended)
        pieces += found
        if held:
            state = replace(state, held=held)
    return state, _joined(pieces)


def _read_line(state: Reading, text: str, grammar: Grammar, *, last: bool) -> tuple[Reading, list[Piece], str]:
    """Read (part of) one line → state, pieces, what is held back."""
    head = (state.line + text)[:_LINE_KEPT]
    fence = _FENCE.match(head)
    opening = fence is not None and not state.fence
    pieces: list[Piece] = []
    held = ""
    if state.fence or opening:
        pieces.append(Plain(text))
    else:
        pieces, held = _read_prose(text, grammar, last=last)
    seen = text[: len(text) - len(held)]
    line = (state.line + seen)[:_LINE_KEPT]
    if not text.endswith("\n"):
        return replace(state, line=line), pieces, held
    if opening and fence is not None:
        return Reading(fence=fence[1]), pieces, ""
    if fence is not None and state.fence and fence[1].startswith(state.fence):
        return Reading(), pieces, ""
    return Reading(fence=state.fence), pieces, ""


def _read_prose(text: str, grammar: Grammar, *, last: bool) -> tuple[list[Piece], str]:
    held_from = len(text)
    if not last:
        for start in range(max(0, len(text) - grammar.reach), len(text)):
            if grammar.could_begin(text[start:]):
                held_from = start
                break
    pieces: list[Piece] = []
    done = 0
    for match in grammar.pattern.finditer(text, 0, held_from):
        pieces += [Plain(text[done : match.start()]), Marker(match[0], match[1])]
        done = match.end()
    pieces.append(Plain(text[done:held_from]))
    return [piece for piece in pieces if piece.text], text[held_from:]


def _lines(text: str) -> Iterator[str]:
    yield from re.findall(r"[^\n]*\n|[^\n]+", text)


def _joined(pieces: Iterable[Piece]) -> list[Piece]:
    joined: list[Piece] = []
    for piece in pieces:
        if joined and isinstance(piece, Plain) and isinstance(before := joined[-1], Plain):
            joined[-1] = Plain(before.text + piece.text)
        else:
            joined.append(piece)
    return joined


def defuse(text: str, format: str) -> str:
    """`text` with every marker broken by an invisible word joiner: a document that contains `#ref:a1b2` is quoted
    without citing anything."""
    grammar = Grammar.of(format)
    return grammar.pattern.sub(lambda match: match[0][0] + "\u2060" + match[0][1:], text)


def cited(marker: str, verdict: Verdict, item: Item | None) -> Cited:
    """A marker as `stream_end` lists it."""
    if item is None:
        return Cited(marker=marker, verdict=verdict)
    return Cited(
        marker=marker,
        verdict=verdict,
        title=item.title,
        url=item.url,
        type=item.type,
        collection=item.collection,
        document_id=item.document_id,
        model=item.model,
        record_id=item.record_id,
    )
