"""The languages that questions and documents are read in: one file in `words/` describes each.

A file begins with lines `key value`: `name`, `script` (one of `core.language.scripts`), `usual yes`
for the language that text of its script has where its words do not decide, `stemmer yes` where
Snowball has one, `nouns capitalised`. Then come sections, `[name]`, with words between blanks or,
where a part has blanks, one part on each line:

| section | has |
|---|---|
| frequent | the most frequent words, by which documents are recognised |
| function | words that make sentences and carry no topic; a star stands for any ending |
| asking | words with which people ask: "tell"; quoting knows the languages that list them |
| relating | words without a topic that a search query keeps: "without", "no" |
| vague | words that are in passages on any subject: "often", "get", "use" |
| articles, quantities, units, comparing, joining names, capital pronouns | for keywords |
| leads | openings of questions, as regular expressions; each line is an alternative |
| abbreviations, abbreviations before numbers, after ordinals | where a full stop ends no sentence |
| rows | sentences about a table of records, each with its key and a colon in front |
| months, numbers | the twelve months, and zero to twelve, in their order |
| names of units | the symbol of a unit and its names, one unit on each line |
| endings | a regular expression of the particles that are written onto a word |
| cut, whole | scripts without blanks: what is cut out of a question, and longer words that stay |
| before names | prepositions that leave a question together with the name behind them |
| asks number, asks value, asks what | regular expressions, one on each line, of questions whose
answer is a number, is often in a table, or is a definition; `asks what` is the opening |
| asks how | openings of questions for how something is done, likewise |
| asks whether, asks property, asks figure | openings of questions for yes or no (words), and
regular expressions of questions for a property of a thing and for a figure; `property` is the word
that an answer has (`handlers.kb.ranking.asked`) |
| vague properties, figures | properties that texts do not name, and words that are figures |
| prices, money | properties that an amount of money answers, and what follows or precedes one |
| subject ends | words behind which "what is X for Y" has more than a name |
| joining questions, opening questions | words that join two questions, and begin the second one |
| referring back | words of a second question that mean something of the first one |
| quoting | sentences of an answer without a model, likewise: how far passages answer, and so on |
| greetings, thanks | what is only a greeting or only thanks, one on each line |
| follow-up … | what `host.turn.follow_up` needs; a language without them has no follow-ups |

A new file is a new language for all parts of the host.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).with_name("words")


@dataclass(frozen=True)
class Language:
    """One language. `code` is its code (ISO 639-1 where it has one), `name` its English name in
    lower case."""

    code: str
    name: str
    script: str
    usual: bool = False
    stemmer: bool = False
    nouns_capitalised: bool = False
    sections: Mapping[str, tuple[str, ...]] = field(default_factory=dict, repr=False)
    _words: dict[str, frozenset[str]] = field(default_factory=dict, repr=False, compare=False)

    def lines(self, section: str) -> tuple[str, ...]:
        """Return the lines of a section; () if the file has none."""
        return self.sections.get(section, ())

    def words(self, *sections: str) -> frozenset[str]:
        """Return the words of these sections."""
        key = "\n".join(sections)
        if key not in self._words:
            self._words[key] = frozenset(
                word
                for section in sections
                for line in self.lines(section)
                for word in line.split()
            )
        return self._words[key]


@cache
def languages() -> Mapping[str, Language]:
    """Return every language by its code."""
    return {path.stem: _read(path) for path in sorted(FOLDER.glob("*.txt"))}


def language(code: str) -> Language | None:
    """Return the language of a code (`pt`, `pt-BR`) or an English name; None for an unknown one."""
    name = code.lower()
    known = languages()
    by_name = known.get(name) or known.get(name.partition("-")[0])
    return by_name or next((each for each in known.values() if each.name == name), None)


@cache
def all_words(section: str) -> frozenset[str]:
    """Return the words of a section in every language that has it."""
    return frozenset().union(*(each.words(section) for each in languages().values()))


def _read(path: Path) -> Language:
    head: dict[str, str] = {}
    sections: dict[str, tuple[str, ...]] = {}
    section = ""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("[") and line.endswith("]"):
            section = line[1:-1]
            sections[section] = ()
        elif line and not line.startswith("#"):
            if section:
                sections[section] += (line,)
            else:
                key, _, value = line.partition(" ")
                head[key] = value
    return Language(
        path.stem,
        head["name"],
        head["script"],
        usual="usual" in head,
        stemmer="stemmer" in head,
        nouns_capitalised=head.get("nouns") == "capitalised",
        sections=sections,
    )
