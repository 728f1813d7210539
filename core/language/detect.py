"""The detector of languages: by the script of a text, and by the words of `core.language.catalogue`
where several languages share a script. Pure.

The questions of `tests/web/test_keyword_languages.py`, one in each of 48 languages, are all
recognised. Libraries that were tried recognise 46 (py3langid) and 44 (lingua, 96 MB); both take
"How do I install FastAPI?" for another language than English, and py3langid never abstains. The
words are needed for keywords and follow-ups in any case.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache

from groundhook.core.language.catalogue import Language, languages
from groundhook.core.language.scripts import count_scripts, main_script

_SAMPLE = 20_000  # characters of a document that decide
_ENOUGH = 20  # one word in so many must be known
_KANA = re.compile("[\u3040-\u30ff]")
_WORD = re.compile(r"[^\W\d_][\w\u0300-\u036f\u0900-\u0dff]*(?:['’-][^\W\d_]+)*")
_PARTS = re.compile(r"['’-]")
_OF_QUESTIONS = ("frequent", "function", "relating")


def detect(
    text: str, *, question: bool = False, context: str = "", among: Collection[str] | None = None
) -> str:
    """Return the code of a text's language; "" if none is recognised.

    A document is recognised by its frequent words, a `question` by all words without a topic, in
    any of the scripts that it contains. `context` decides between equals. `among` limits the
    languages to those codes.
    """
    scripts = count_scripts(text[:_SAMPLE])
    if not scripts:
        return ""
    candidates = [each for code, each in languages().items() if among is None or code in among]
    script = main_script(scripts)
    looked_at = scripts if question else {script: scripts[script]}
    words = _count_words(text[:_SAMPLE])
    best = _best(
        [each for each in candidates if each.script in looked_at],
        words,
        _count_words(context[:_SAMPLE]),
        question=question,
        script=script,
    )
    if best is not None:
        return best
    for other in sorted(looked_at, key=lambda name: (-scripts[name], name)):
        if other != "latin" and (usual := _usual(other, text, candidates)):
            return usual
    return ""


def _best(
    candidates: Iterable[Language],
    words: Counter[str],
    context: Counter[str],
    *,
    question: bool,
    script: str,
) -> str | None:
    """Return the candidate with the most known words, if they are enough; the usual language of
    its script where another one has not more."""
    known, known_around = _count_known(words, question), _count_known(context, question)
    counted = {
        each.code: (
            known[each.code],
            known_around[each.code],
            each.script == script,
            each.usual,
        )
        for each in candidates
        if each.code in known
    }
    best = max(counted, key=counted.__getitem__, default=None)
    if best is None or counted[best][0] * _ENOUGH < words.total():
        return None
    return best


def _count_known(words: Counter[str], question: bool) -> Counter[str]:
    """Return how many of the words each language knows, by its code."""
    knowing = _knowing(question)
    found: Counter[str] = Counter()
    for word, times in words.items():
        for code in knowing.get(word, ()):
            found[code] += times
    return found


@cache
def _knowing(question: bool) -> Mapping[str, Sequence[str]]:
    """Return the codes of the languages that are recognised by a word."""
    sections = _OF_QUESTIONS if question else ("frequent",)
    codes: dict[str, list[str]] = {}
    for code, each in languages().items():
        for word in each.words(*sections):
            codes.setdefault(word, []).append(code)
    return codes


def _usual(script: str, text: str, candidates: Iterable[Language]) -> str:
    """Return the language that text of a script usually has, if it is among the candidates."""
    codes = {each.code: each for each in candidates if each.script == script}
    if script == "cjk" and "ja" in codes and _KANA.search(text):
        return "ja"
    return next((code for code, each in codes.items() if each.usual), "")


def _count_words(text: str) -> Counter[str]:
    """Return how often each word occurs, in lower case: as a whole, and its parts beside an
    apostrophe or a hyphen."""
    found = Counter[str](_WORD.findall(text.lower()))
    for word, times in list(found.items()):
        if not word.isalpha():
            for part in _PARTS.split(word):
                found[part] += times if part != word else 0
    return found
