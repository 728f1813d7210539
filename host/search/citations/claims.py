"""Checks the sentences of a streamed answer against the sources that they cite: a fold over the
pieces of the answer. Pure, and the same for every way of splitting an answer into pieces.

A marker belongs to the sentence before it. A sentence without a marker is covered by the next one
of its line that cites, if the facts are in the same sources.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from groundhook.core.language.sentences import spans
from groundhook.core.types.events import Claims
from groundhook.host.search.citations.facts import CitedSource, Fact, facts, sums
from groundhook.host.search.citations.reader import MarkdownLine

LONGEST_LINE = 4000  # characters that are read as one line
# Times that a fact of an answer is looked for in a source, each of which may take 0.1 ms; later
# ones are not looked for.
MOST_LOOKS = 2000
MOST_MARKS = 200  # of a line; later ones are not looked at
MOST_MISSING = 20  # of a marker
MOST_CITED = 100  # sentences that are kept
LONGEST_KEPT = 1000  # characters of a kept sentence

_ADDRESS = re.compile(r"\]\([^()\s]{1,2000}\)|https?://[^\s<>]+")
_PREFIX = re.compile(r"[\s>]*(?:(?:[-*+•]|\d{1,3}[.)])\s+)?")
_GAP = re.compile(r" ([.,;:!?…])")
_HEADING = re.compile(r"\s{0,3}(?:#{1,6}\s|\*\*[^*]+\*\*:?\s*$)")


@dataclass(frozen=True)
class Mark:
    """A marker at a place in its line; `source` is None for an unknown one."""

    place: int
    marker: str
    source: CitedSource | None


@dataclass(frozen=True)
class CitedSentence:
    """A sentence with the markers of its known sources; `before` is the one before it in its line.
    `supported`: its facts are in them."""

    text: str
    before: str
    markers: tuple[str, ...]
    supported: bool


@dataclass(frozen=True)
class ClaimState:
    """The state of the fold: the line so far with its marks, the fence of a block of code that it
    is in, and what was found. `missing` has the facts that the sources of a marker lack, `cited`
    the sentences that cite."""

    line: str = ""
    marks: tuple[Mark, ...] = ()
    fence: MarkdownLine | None = None
    cut: bool = False  # whether the line began before `line`
    looked_for: int = 0
    claims: Claims = Claims()
    missing: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    cited: tuple[CitedSentence, ...] = ()


def with_text(state: ClaimState, text: str, known: frozenset[str]) -> ClaimState:
    """Return the state after more text. `known` are the words of the question."""
    line = state.line
    for part in re.findall(r"[^\n]*\n|[^\n]+", text):
        # An answer may have half a million empty lines, which say nothing.
        rest = part if part != "\n" or line or state.marks or state.cut else ""
        while rest:
            room = LONGEST_LINE - len(line)
            line, rest = line + rest[:room], rest[room:]
            if line.endswith("\n") or len(line) == LONGEST_LINE:
                state, line = _end_line(state, line, known), ""
    return replace(state, line=line)


def with_marker(state: ClaimState, marker: str, source: CitedSource | None) -> ClaimState:
    """Return the state after a marker."""
    if len(state.marks) == MOST_MARKS:
        return state
    return replace(state, marks=(*state.marks, Mark(len(state.line), marker, source)))


def ended(state: ClaimState, known: frozenset[str]) -> ClaimState:
    """Return the state after the end of a text: what follows is outside of any block of code."""
    return replace(_end_line(state, state.line, known), fence=None, cut=False)


def _end_line(state: ClaimState, line: str, known: frozenset[str]) -> ClaimState:
    marks, fence = state.marks, state.fence
    over = line.endswith("\n")
    next_fence, in_code = fence, fence is not None
    if not state.cut:
        sign = MarkdownLine().extend(line.removesuffix("\n"))
        if fence is not None and sign.closes(fence):
            next_fence = None
        elif fence is None and sign.opens:
            next_fence, in_code = sign, True
    next_line = replace(state, line="", marks=(), cut=not over, fence=next_fence)
    if in_code or not (line.strip() or marks):
        return next_line
    if _HEADING.match(line) and not marks:
        return next_line
    return _check(next_line, _sentences(line, marks), known)


def _sentences(line: str, marks: Sequence[Mark]) -> list[tuple[str, list[Mark]]]:
    """Return the sentences of a line with their markers."""
    plain = _ADDRESS.sub(lambda found: " " * len(found[0]), line)
    prefix = _PREFIX.match(plain)
    start = prefix.end() if prefix else 0
    found = spans(plain, start) or [(start, len(plain))]
    places = [begin for begin, _ in found]
    with_marks: list[tuple[str, list[Mark]]] = [(plain[low:high], []) for low, high in found]
    at = 0
    for mark in marks:
        while at + 1 < len(places) and places[at + 1] < mark.place:
            at += 1
        with_marks[at][1].append(mark)
    return with_marks


def _check(
    state: ClaimState, sentences: Sequence[tuple[str, list[Mark]]], known: frozenset[str]
) -> ClaimState:
    claims, missing, looked_for = state.claims, dict(state.missing), state.looked_for
    covering: list[CitedSource] = []
    kept: list[CitedSentence] = []
    for at, (text, marks) in reversed(list(enumerate(sentences))):
        cited = {mark.marker: mark.source for mark in marks if mark.source is not None}
        asked = list(cited.values()) if marks else covering
        each = max(1, len(asked))
        more = max(0, MOST_LOOKS - looked_for) // each
        found = facts(text, known=known)[:more] if more else ()
        looked_for += len(found) * each
        if not marks:
            claims = _count_without_marks(claims, found, covering)
            continue
        covering = asked
        lacking = missing_of(found, covering) if covering else []
        claims = _count(claims, supported=bool(covering) and not lacking)
        before = sentences[at - 1][0] if at else ""
        kept += _kept(text, before, tuple(cited), supported=not lacking)
        for mark in marks if lacking else ():
            if mark.source is not None:
                both = dict.fromkeys([*missing.get(mark.marker, ()), *lacking])
                missing[mark.marker] = tuple(both)[:MOST_MISSING]
    cited_so_far = (*state.cited, *reversed(kept))[:MOST_CITED]
    return replace(state, claims=claims, missing=missing, looked_for=looked_for, cited=cited_so_far)


def _kept(
    text: str, before: str, markers: tuple[str, ...], *, supported: bool
) -> list[CitedSentence]:
    plain, context = (_plain(each[:LONGEST_KEPT]) for each in (text, before))
    return [CitedSentence(plain, context, markers, supported)] if plain and markers else []


def _plain(text: str) -> str:
    """Return a sentence without the gap that its marker leaves before a full stop."""
    return _GAP.sub(r"\1", " ".join(text.split()))


def missing_of(found: Sequence[Fact], sources: Sequence[CitedSource]) -> list[str]:
    """Return the facts that no source has, as they are written."""
    lacking = [fact for fact in found if not any(source.has(fact) for source in sources)]
    if not any(fact.kind == "number" for fact in lacking):
        return [fact.text for fact in lacking]
    added = sums(sources)
    return [fact.text for fact in lacking if added.isdisjoint(fact.readings)]


def _count_without_marks(
    claims: Claims, found: Sequence[Fact], covering: Sequence[CitedSource]
) -> Claims:
    if not found:
        return claims
    if covering and not missing_of(found, covering):
        return _count(claims, supported=True)
    return claims.model_copy(update={"uncited": claims.uncited + 1})


def _count(claims: Claims, *, supported: bool) -> Claims:
    name = "supported" if supported else "doubtful"
    return claims.model_copy(update={"cited": claims.cited + 1, name: getattr(claims, name) + 1})


def with_verdict(claims: Claims, sentence: CitedSentence, *, supported: bool) -> Claims:
    """Return the counts with a verdict on a sentence: one that its sources do not support is
    doubtful."""
    if supported:
        return claims.model_copy(update={"verified": claims.verified + 1})
    moved = int(sentence.supported)
    return claims.model_copy(
        update={
            "unsupported": claims.unsupported + 1,
            "supported": claims.supported - moved,
            "doubtful": claims.doubtful + moved,
        }
    )
