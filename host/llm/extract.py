"""From references and a question to an answer made of quotations: pure, without a language model.

Every sentence of the answer stands in the item that is cited behind it. Candidates are scored by the words they share with
the question (weighted by rarity among the candidates), by the nearness of meaning where an embedding model was
asked, and by the score of their item; the best that say something new are shown source by source.

    score = (0.5 · words + 0.5 · meaning) · shape · (0.5 + 0.5 · item)      with an embedding model
    score = words · shape · (0.5 + 0.5 · item)                              without

`words` is the share of the question's rarity that the sentence has (a term only in the heading or title counts half),
`meaning` is the similarity set against the lowest and the highest of the shortlist, `item` is the item's score × weight
over the best item's, `shape` lowers fragments, code, questions and sentences that announce a list, and raises a sentence
with a number when a number is asked for.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from host.llm.sentences import Sentence, sentences
from host.llm.terms import terms
from host.types.search import Item

SHORTLIST = 24  # candidates whose meaning is compared, and their characters in all: what an embedding model
SHORTLIST_LENGTH = 1200  # on a CPU reads in well under a second
MOST_QUOTES = 4
MOST_QUOTES_UNSURE = 2  # when nothing answers the question directly
MOST_SOURCES = 3
MOST_ROWS = 8
LEAST_OF_BEST = 0.5  # a quotation is worth at least this share of the best one's score
AROUND = 0.5  # of a term that is only in the heading or title
OF_ITEM = 0.5
OF_MEANING = 0.5
LONG_WINDED = 30  # a sentence of more words than this has some of the question's by chance
DIRECT_WORDS = 0.3  # a best sentence with less of the question's words …
DIRECT_MEANING = 0.5  # … and less similarity does not answer it

_DANGLING = re.compile(
    r"^[\"“*_(]*(?:it|its|this|that|these|those|they|them|he|she|such|both|otherwise|there|then|but|so|therefore|however|also|"
    r"er|sie|es|dies|diese|dieser|dieses|daher|deshalb|dann|aber|il|elle|ils|elles|cela|ceci|esto|eso|"
    r"הוא|היא|הם|הן|זה|זו|זאת|لكن|هو|هي|هذا|هذه)\b",
    re.I,
)

_ASKS_NUMBER = re.compile(
    r"\bhow (?:long|many|much|old|far|fast|big|large|often|high|tall)\b(?: (?:does|do|did|will) it take)?"
    r"|\bwhen\b|\bwhat (?:year|date|time|percentage|number)\b|\bwie (?:lange|viele?|alt|weit|schnell|groß|oft|hoch)\b|\bwann\b"
    r"|\bcombien\b|\bquand\b|\bcu[aá]ntos?\b|\bcu[aá]ndo\b|\bכמה\b|\bמתי\b|\bكم\b|\bمتى\b|多少|几|何时",
    re.I,
)
_STOPS = (".", "!", "…", "。", "！", "۔", "।")
_DIGIT = re.compile(r"\d")
_CODE_SPAN = re.compile(r"`[^`]*`")
_SYMBOL = re.compile(r"[(){}\[\]=<>;$#@\\_]")


@dataclass(frozen=True)
class Candidate:
    """A sentence that may be quoted: from which item (its index in the references), at which place of it."""

    item: int
    place: int
    sentence: Sentence

    @property
    def text(self) -> str:
        return self.sentence.text


@dataclass(frozen=True)
class Quote:
    """A passage of the answer: consecutive sentences of one item."""

    item: int
    place: int
    text: str
    score: float


# ------------------------------------------------------------------------------------------------ candidates


def candidates(references: Sequence[Item]) -> list[Candidate]:
    """Every sentence of the references that may be quoted. Rows of a database have none; a sentence that holds what
    looks like a citation marker is left out, since it would read as a citation of something else."""
    marker = _marker_like(references)
    found: list[Candidate] = []
    for index, item in enumerate(references):
        if item.data is not None:
            continue
        for place, sentence in enumerate(sentences(item.content)):
            if marker is None or not marker.search(sentence.text):
                found.append(Candidate(index, place, sentence))
    return found


def words(question: str, found: Sequence[Candidate], references: Sequence[Item]) -> list[float]:
    """For each candidate the share (0-1) of the question's words that it has, rare words counting more."""
    wanted = set(terms(_ASKS_NUMBER.sub(" ", question)))
    if not wanted:
        return [0.0] * len(found)
    bodies = [set(terms(candidate.text)) for candidate in found]
    seen = Counter(term for body in bodies for term in body & wanted)
    rarity = {term: math.log(1 + (len(found) - seen[term] + 0.5) / (seen[term] + 0.5)) for term in wanted}
    whole = sum(rarity.values())
    scores: list[float] = []
    for candidate, body in zip(found, bodies, strict=True):
        around = set(terms(f"{references[candidate.item].title} {candidate.sentence.heading}")) & wanted - body
        have = sum(rarity[term] for term in body & wanted) + sum(rarity[term] for term in around) * AROUND
        scores.append(min(1.0, have / whole))
    return scores


def shortlist(found: Sequence[Candidate], lexical: Sequence[float], size: int = SHORTLIST) -> list[int]:
    """The indexes of the candidates worth comparing by meaning: by shared words, then by the place of item and sentence."""
    order = sorted(range(len(found)), key=lambda at: (-lexical[at], found[at].item + found[at].place, found[at].item))
    chosen: list[int] = []
    length = 0
    for at in order[:size]:
        length += len(found[at].text)
        if chosen and length > SHORTLIST_LENGTH:
            break
        chosen.append(at)
    return sorted(chosen)


# ------------------------------------------------------------------------------------------------ choice


def choose(
    question: str,
    found: Sequence[Candidate],
    lexical: Sequence[float],
    meaning: Mapping[int, float] | None,
    references: Sequence[Item],
) -> list[Quote]:
    """The best quotations, best first: none says again what another said."""
    scores = _scores(found, lexical, meaning, references)
    if _ASKS_NUMBER.search(question):
        scores = {at: score * (1.25 if _DIGIT.search(found[at].text) else 1.0) for at, score in scores.items()}
    most = MOST_QUOTES if answers(lexical, meaning) else MOST_QUOTES_UNSURE
    by_place = {(candidate.item, candidate.place): candidate for candidate in found}
    chosen: list[Quote] = []
    for at in sorted(scores, key=lambda at: (-scores[at], found[at].item, found[at].place)):
        if len(chosen) == most or (chosen and scores[at] < LEAST_OF_BEST * chosen[0].score):
            break
        quote = _quote(found[at], scores[at], by_place)
        sources = {other.item for other in chosen} | {quote.item}
        if len(sources) <= MOST_SOURCES and not any(_repeats(quote, other) for other in chosen):
            chosen.append(quote)
    return chosen


def answers(lexical: Sequence[float], similarities: Mapping[int, float] | None) -> bool:
    """Whether some candidate answers the question, rather than only being the nearest of what was found."""
    if max(lexical, default=0.0) >= DIRECT_WORDS:
        return True
    return similarities is not None and max(similarities.values(), default=0.0) >= DIRECT_MEANING


def _scores(
    found: Sequence[Candidate], lexical: Sequence[float], meaning: Mapping[int, float] | None, references: Sequence[Item]
) -> dict[int, float]:
    best = max((item.score * item.weight for item in references), default=0.0) or 1.0
    spread = _spread(meaning) if meaning is not None else None
    scores: dict[int, float] = {}
    for at in spread if spread is not None else range(len(found)):
        item = references[found[at].item]
        base = lexical[at] if spread is None else (1 - OF_MEANING) * lexical[at] + OF_MEANING * spread[at]
        if spread is None and not any(lexical):
            base = 1 / (1 + found[at].place)  # a question without words of its own: what stands first
        scores[at] = base * _shape(found[at].sentence) * (1 - OF_ITEM + OF_ITEM * item.score * item.weight / best)
    return scores


def _spread(meaning: Mapping[int, float]) -> dict[int, float]:
    low, high = min(meaning.values(), default=0.0), max(meaning.values(), default=0.0)
    return {at: (value - low) / (high - low) if high > low else 0.5 for at, value in meaning.items()}


def _shape(sentence: Sentence) -> float:
    """0.2-1: how well a passage reads when it stands alone."""
    text = sentence.text
    prose = _CODE_SPAN.sub("", text)
    value = 1.0
    if text.endswith((":", "：")):
        value = 0.4
    elif text.endswith(("?", "？", "؟")):
        value = 0.5
    elif sentence.kind == "row" or (sentence.kind == "prose" and not text.rstrip("\"'”’)*_`]").endswith(_STOPS)):
        value = 0.85
    if text.startswith(("{", "[{", "<")) or len(_SYMBOL.findall(prose)) > 0.06 * len(prose):
        value *= 0.5
    if text[:1].islower() and sentence.kind == "prose":
        value *= 0.75
    if sum(map(str.isalpha, prose)) < 0.5 * len(prose):
        value *= 0.6
    length = len(terms(text))
    if length > LONG_WINDED:
        value *= (LONG_WINDED / length) ** 0.3
    return value * (0.5 if length < 3 else 0.85 if length < 5 else 1.0)


def _quote(candidate: Candidate, score: float, by_place: Mapping[tuple[int, int], Candidate]) -> Quote:
    """The sentence, with the one before it when it begins by pointing back."""
    before = by_place.get((candidate.item, candidate.place - 1))
    if before is not None and before.sentence.block == candidate.sentence.block and _DANGLING.match(candidate.text):
        return Quote(candidate.item, before.place, f"{before.text} {candidate.text}", score)
    return Quote(candidate.item, candidate.place, candidate.text, score)


def _repeats(quote: Quote, other: Quote) -> bool:
    """Whether one of two quotations says little that the other does not."""
    if quote.text in other.text or other.text in quote.text:
        return True
    mine, theirs = set(terms(quote.text)), set(terms(other.text))
    smaller = min(len(mine), len(theirs))
    return smaller > 0 and len(mine & theirs) / smaller >= 0.8


def _marker_like(references: Sequence[Item]) -> re.Pattern[str] | None:
    """What a marker looks like, from those the references carry: the id is the last run of letters and digits."""
    for item in references:
        found = re.fullmatch(r"(.*?)([A-Za-z0-9]+)([^A-Za-z0-9]*)", item.citation_id, re.S)
        if found and (found[1] or found[3]):
            return re.compile(re.escape(found[1]) + r"[A-Za-z0-9]+" + re.escape(found[3]))
    return None


# ------------------------------------------------------------------------------------------------ answer


def compose(quotes: Sequence[Quote], references: Sequence[Item], *, direct: bool) -> str:
    """The answer as Markdown: what it is, records one a line, then each source's title and its quotations in the
    order of the source. The source with the best quotation comes first."""
    records = [item for item in references if item.data is not None]
    parts: list[str] = []
    if records:
        count = f"{len(records)} records" if len(records) != 1 else "1 record"
        parts.append(f"No language model is configured; the search found {count}:")
        parts.append("\n".join(f"- {record(item)} {item.citation_id}".rstrip() for item in records[:MOST_ROWS]))
        if len(records) > MOST_ROWS:
            parts.append(f"… and {len(records) - MOST_ROWS} more.")
    if quotes:
        parts.append(_opening(direct, after_records=bool(records)))
    for title in dict.fromkeys(_title(references[quote.item]) for quote in quotes):
        lines = [f"**{title}**"] if title else []
        mine = [quote for quote in quotes if _title(references[quote.item]) == title]
        first = {quote.item: at for at, quote in reversed(list(enumerate(mine)))}
        for quote in sorted(mine, key=lambda quote: (first[quote.item], quote.place)):
            lines.append(f"- {quote.text} {references[quote.item].citation_id}".rstrip())
        parts.append("\n".join(lines))
    return "\n\n".join(parts) if parts else NOTHING


NOTHING = (
    "No language model is configured, and the search found nothing for this question.\n\n"
    "For an answer in free words, describe a language model in `connectors/<name>.conn.yao` "
    '(`"type": "openai"` for any OpenAI-compatible endpoint, with `model`, `host` and `key` under `options`) '
    "and name it as the assistant's `connector`."
)


def record(item: Item) -> str:
    """A database record as one line: its title, then its other fields."""
    fields = [
        f"{name}: {_shown(value)}"
        for name, value in (item.data or {}).items()
        if value is not None and value != "" and not name.startswith("__") and str(value) != item.title
    ]
    line = "; ".join(fields[:10])
    title = _title(item)
    return f"**{title}** – {line}" if title and line else f"**{title}**" if title else line


def _shown(value: object) -> str:
    text = " ".join(str(value).split())
    return text if len(text) <= 80 else text[:79].rstrip() + "…"


def _title(item: Item) -> str:
    return " ".join(item.title.split()).replace("**", "")


def _opening(direct: bool, *, after_records: bool) -> str:
    if after_records:
        return "From the other sources:"
    if direct:
        return "No language model is configured; these passages answer best:"
    return "No language model is configured, and nothing found answers this directly. The nearest passages:"
