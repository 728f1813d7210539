"""The built-in extraction of entities and relations: names, codes and quotations by rules, known
names by look-up, and relations between the entities of a sentence. Pure; it loads no model.

In scripts with capitals a run of capitalised words is a name. Other scripts have fewer signs: known
names (titles of documents, the declared dictionary) are looked up, in Hebrew and Arabic also after
prefixed letters, in Chinese and Japanese within unspaced text; and quotations, codes, names in
Latin letters, words in katakana and acronyms with gershayim are names.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

from groundhook.handlers.kb.graph.names import CODE, LONGEST, TITLES, key_of, kind_of

LONGEST_RUN = 6  # words of a known name
FARTHEST = 12  # words between two names that are related
_UNCERTAIN = ("term", "work")  # kinds for which a capital letter or a quotation mark is enough
# Share of frequent German words from which a text counts as German, where one capitalised word is
# no sign of a name: all nouns have capitals.
_GERMAN_SHARE = 0.15


@dataclass(frozen=True, kw_only=True)
class Mention:
    """An entity that a passage mentions, and how often."""

    key: str
    name: str
    kind: str
    count: int = 1
    description: str = ""


@dataclass(frozen=True, kw_only=True)
class EntityRelation:
    """Two entities, by their keys, that a passage relates. `words` are those between the names, if
    they are few."""

    source: str
    target: str
    words: str = ""


@dataclass(frozen=True, kw_only=True)
class PassageEntities:
    """The entities and relations of a passage. `about`: the key of the subject of its document."""

    mentions: tuple[Mention, ...] = ()
    relations: tuple[EntityRelation, ...] = ()
    about: str = ""


@dataclass(frozen=True, kw_only=True)
class KnownNames:
    """Known names, key → (name, kind); those of `primary` have priority."""

    names: Mapping[str, tuple[str, str]]
    primary: KnownNames | None = None

    def get(self, text: str) -> tuple[str, str, str] | None:
        key = key_of(text)
        return self._find(key) if len(key) > 1 else None

    def _find(self, key: str) -> tuple[str, str, str] | None:
        found = self.primary._find(key) if self.primary else None
        return found or ((key, *self.names[key]) if key in self.names else None)


@dataclass(frozen=True)
class _NameMatch:
    """A name at `start` to `end` of a sentence."""

    start: int
    end: int
    key: str
    name: str
    kind: str


def extract(text: str, title: str, known: KnownNames) -> PassageEntities:
    """Return the entities of a passage and their relations. The `title` of its document is an
    entity too."""
    sentences = [sentence for sentence in _SENTENCE.split(text) if sentence.strip()]
    about = key_of(title)
    if about:
        known = KnownNames(names={about: (_one_line(title), "term")}, primary=known)
    noisy = _capitalises_nouns(sentences)
    counts: Counter[str] = Counter()
    seen: dict[str, tuple[str, str]] = {}
    relations: dict[EntityRelation, None] = {}
    for sentence in sentences:
        found = _drop_overlaps(
            [
                *_find_known(sentence, known),
                *_find_marked(sentence),
                *_find_capitalised(sentence, single=not noisy),
            ]
        )
        for one in found:
            counts[one.key] += 1
            if one.key not in seen or seen[one.key][1] == "term":
                seen[one.key] = (one.name, one.kind)
        relations.update(dict.fromkeys(_find_relations(sentence, found)))
    if about:
        counts[about] += 1
        seen.setdefault(about, (title.strip()[:LONGEST], "term"))
    same = _full_names(seen)
    merged: Counter[str] = Counter()
    for key, count in counts.items():
        merged[same.get(key, key)] += count
    return PassageEntities(
        mentions=tuple(
            Mention(key=key, name=seen[key][0], kind=seen[key][1], count=count)
            for key, count in sorted(merged.items())
        ),
        relations=tuple(
            EntityRelation(source=source, target=target, words=relation.words)
            for relation in relations
            if (source := same.get(relation.source, relation.source))
            != (target := same.get(relation.target, relation.target))
        ),
        about=about,
    )


def names_in(question: str, known: KnownNames, subjects: Collection[str] = ()) -> list[str]:
    """Return the keys of the known entities that a question names, in upper or lower case; of
    overlapping names the longest. A single lower-case word counts beside surer names only if it is
    a subject of a document (`subjects`) or has a definite kind: `director` is a common word even if
    an entity has that name."""
    named = _drop_overlaps(_find_known(question, known))
    sure = [
        one
        for one in named
        if one.key in subjects
        or one.kind not in _UNCERTAIN
        or not question[one.start : one.end].islower()
        or " " in one.key
    ]
    return list(dict.fromkeys(one.key for one in sure or named))


# ----------------------------------------------------------------------------------- finding names

# A sentence does not end after these.
_SHORT = "".join(
    rf"(?<!\b{word}\.)" for word in ("Dr", "Mr", "Mrs", "Ms", "St", "Prof", "No", "vs")
)
_SENTENCE = re.compile(rf"(?<=[。！？])|(?<=[^\sA-Z.][.!?]){_SHORT}[\"'”’)]*\s+(?=\S)|\n+")
_WORD = re.compile(r"\w+(?:[.'’&/־-]\w+)*(?:\.(?=\s+\w\.))?")
_QUOTED = re.compile("[“„«《「『]([^“”„«»《》「」『』\n]{2,60})[”“»》」』]")
_KATAKANA = re.compile(r"[\u30a0-\u30ff]{3,}(?:[・＝][\u30a0-\u30ff]{2,})*")
_GERSHAYIM = re.compile('[\u05d0-\u05ea]{1,6}["״][\u05d0-\u05ea]{1,2}(?![\u05d0-\u05ea])')
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\u0e00-\u0e7f]+")
_PREFIXES = re.compile("^(?:[והבכלמש]{1,3}|وال|بال|ال|و|ب|ل)(?=.{2})")
_LATIN_LIKE = re.compile(r"[^\W\d_]")
# fmt: off
_JOINING = frozenset({
    "of", "de", "la", "le", "del", "della", "da", "di", "du", "des", "von", "van", "der", "den",
    "und", "y", "al", "bin", "ibn", "&",
})
_COMMON = frozenset({
    "a", "an", "the", "this", "that", "these", "those", "it", "its", "he", "she", "they", "we",
    "you", "i", "his", "her", "their", "our", "your", "my", "in", "on", "at", "by", "for", "from",
    "with", "of", "to", "as", "and", "or", "but", "if", "when", "while", "where", "what", "who",
    "whom", "whose", "which", "why", "how", "is", "are", "was", "were", "be", "been", "do", "does",
    "did", "has", "have", "had", "there", "here", "then", "after", "before", "during", "since",
    "until", "although", "though", "because", "so", "not", "no", "yes", "one", "two", "three",
    "first", "second", "most", "many", "some", "all", "each", "both", "other", "another", "more",
    "also", "however", "such", "between", "among", "under", "over", "about", "into", "through",
    "can", "may", "will", "would", "should", "must", "january", "february", "march", "april",
    "june", "july", "august", "september", "october", "november", "december", "monday", "tuesday",
    "wednesday", "thursday", "friday", "saturday", "sunday", "name", "use", "see", "note",
    "according", "der", "die", "das", "ein", "eine", "und", "el", "los", "las", "un", "una", "les",
    "des", "une", "it's", "he's",
})
_GERMAN = frozenset({
    "der", "die", "das", "und", "ist", "nicht", "mit", "ein", "eine", "einer", "einen", "dem",
    "den", "des", "im", "auf", "für", "sich", "auch", "zu", "von", "wird", "bei", "aus", "nach",
    "wurde", "sind", "als", "oder",
})
# fmt: on


def _find_capitalised(sentence: str, *, single: bool) -> Iterator[_NameMatch]:
    """Yield runs of capitalised words, with the small words that join them. `single`: one word
    alone may be a name."""
    words = list(_WORD.finditer(sentence))
    for run in _capitalised_runs(sentence, words):
        run = _trim_common_words(words, run)
        if not run or (len(run) == 1 and not single and not CODE.fullmatch(words[run[0]].group())):
            continue
        start, end = words[run[0]].start(), words[run[-1]].end()
        name = sentence[start:end].rstrip(".'’")
        key = key_of(name)
        if len(key) > 1 and len(name) <= LONGEST and not key.isdigit():
            before = words[run[0] - 1].group() if run[0] else ""
            yield _NameMatch(
                start, end, key, _one_line(name), kind_of(name, before, sentence[end : end + 60])
            )


def _capitalised_runs(sentence: str, words: list[re.Match[str]]) -> Iterator[range]:
    """Yield the indices of the words of each run, which begins and ends with a capitalised word or
    ends with a number."""
    at = 0
    while at < len(words):
        last = at
        if _is_capitalised(words[at].group()):
            while (following := _next_word(sentence, words, last)) is not None:
                last = following
            yield range(at, last + 1)
        at = last + 1


def _trim_common_words(words: list[re.Match[str]], run: range) -> range:
    """Return the run without common words at its ends, such as the first word of a sentence or a
    month, and without a form of address at its beginning."""
    first, end = run.start, run.stop
    while first < end and words[first].group().casefold() in _COMMON | TITLES:
        first += 1
    while end > first and words[end - 1].group().casefold() in _COMMON:
        end -= 1
    return range(first, end)


def _next_word(sentence: str, words: list[re.Match[str]], last: int) -> int | None:
    """Return the index of the next word of a name: a capitalised one directly after, or after up to
    two joining words."""
    if CODE.fullmatch(words[last].group()):
        return None
    for ahead in range(1, 4):
        if last + ahead >= len(words):
            return None
        gap = sentence[words[last + ahead - 1].end() : words[last + ahead].start()]
        if gap.strip(" ") not in ("", "."):
            return None
        word = words[last + ahead].group()
        if _is_capitalised(word) or (word.isdigit() and len(word) < 4 and ahead == 1):
            return last + ahead
        if word.casefold() not in _JOINING | {"the"}:
            return None
    return None


def _find_marked(sentence: str) -> Iterator[_NameMatch]:
    """Yield names that are marked in the text: quotations, codes, and the forms of names in scripts
    without capitals."""
    for pattern, kind in (
        (_QUOTED, "work"),
        (CODE, "code"),
        (_KATAKANA, "term"),
        (_GERSHAYIM, "organization"),
    ):
        for match in pattern.finditer(sentence):
            name = match.group(match.lastindex or 0)
            around = (
                sentence[max(0, match.start() - 1) : match.start()]
                + sentence[match.end() : match.end() + 1]
            )
            if kind == "code" and (
                len(name) < 3 or any(sign.isalnum() or sign == "_" for sign in around)
            ):
                continue
            key = key_of(name)
            if len(key) > 1:
                yield _NameMatch(match.start(), match.end(), key, _one_line(name), kind)


def _find_known(sentence: str, known: KnownNames) -> Iterator[_NameMatch]:
    """Yield known names in any spelling: runs of words, and in unspaced text runs of characters."""
    words = list(_WORD.finditer(sentence))
    for first in range(len(words)):
        for last in range(min(len(words), first + LONGEST_RUN) - 1, first - 1, -1):
            run = sentence[words[first].start() : words[last].end()]
            found = known.get(run) or (
                known.get(_PREFIXES.sub("", run)) if _PREFIXES.match(run) else None
            )
            if found and not (first == last and run.casefold() in _COMMON):
                yield _NameMatch(words[first].start(), words[last].end(), *found)
                break
    for stretch in _UNSPACED.finditer(sentence):
        signs = stretch.group()
        for start in range(len(signs)):
            for length in range(min(12, len(signs) - start), 1, -1):
                if found := known.get(signs[start : start + length]):
                    yield _NameMatch(
                        stretch.start() + start, stretch.start() + start + length, *found
                    )
                    break


def _drop_overlaps(found: list[_NameMatch] | Iterator[_NameMatch]) -> list[_NameMatch]:
    """Return the names that do not overlap, in order; of overlapping ones the longer, then the one
    found first."""
    kept: list[_NameMatch] = []
    for one in sorted(found, key=lambda one: one.start - one.end):
        if all(one.end <= other.start or other.end <= one.start for other in kept):
            kept.append(one)
    return sorted(kept, key=lambda one: one.start)


def _find_relations(sentence: str, found: list[_NameMatch]) -> Iterator[EntityRelation]:
    """Yield relations between neighbouring names of a sentence, with the words between them if
    these are few and not all common words."""
    for one, other in pairwise(found):
        between = _WORD.findall(sentence[one.end : other.start])
        if one.key == other.key or len(between) > FARTHEST:
            continue
        distinctive = [word for word in between if len(word) > 2 and word.casefold() not in _COMMON]
        words = " ".join(between) if distinctive and len(between) <= 6 else ""
        yield EntityRelation(source=one.key, target=other.key, words=words)


def _full_names(seen: Mapping[str, tuple[str, str]]) -> dict[str, str]:
    """Return short key → full key: a last name alone means the only person of the passage with that
    name."""
    ends: dict[str, set[str]] = {}
    for key in seen:
        words = key.split()
        if 2 <= len(words) <= 4:
            ends.setdefault(words[-1], set()).add(key)
    return {
        short: next(iter(full))
        for short, full in ends.items()
        if len(full) == 1 and short in seen and seen[next(iter(full))][1] in ("person", "term")
    }


def _is_capitalised(word: str) -> bool:
    return word[0].isupper() and _LATIN_LIKE.match(word) is not None


def _capitalises_nouns(sentences: list[str]) -> bool:
    """Return whether the text is German, by its frequent words."""
    words = [word.casefold() for sentence in sentences for word in _WORD.findall(sentence)]
    return len(words) >= 8 and sum(word in _GERMAN for word in words) / len(words) > _GERMAN_SHARE


def _one_line(name: str) -> str:
    return " ".join(name.split())[:LONGEST]
