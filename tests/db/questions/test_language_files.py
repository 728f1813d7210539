"""The files of words: every language says what English says, and mistakes are named."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from groundhook.core.errors import ConfigError, SourceNotConfigured
from groundhook.handlers import db
from groundhook.handlers.db.question.language_file import words_in
from groundhook.handlers.db.question.languages import language_of, words_for
from groundhook.handlers.db.question.vocabulary import build_vocabulary, languages, vocabulary

FOLDER = Path(db.__file__).parent


@pytest.mark.parametrize("language", languages())
def test_every_language_has_the_words_that_questions_need(language: str) -> None:
    english, own = (_values_by_kind(one) for one in ("en", language))
    for kind in ("comparisons", "figures", "date_units", "date_months", "date_weekdays"):
        assert own[kind] == english[kind]


def _values_by_kind(language: str) -> dict[str, set[Any]]:
    found: dict[str, set[Any]] = {}
    for _, word in words_in(vocabulary(language).file):
        if word.kind not in ("orders", "conditions"):
            found.setdefault(word.kind, set()).add(word.value)
    return found


def test_every_sentence_that_the_code_says_is_in_the_files() -> None:
    files = [path.read_text(encoding="utf-8") for path in FOLDER.rglob("*.py")]
    said = {key for text in files for key in re.findall(r"\b(?:phrase\(|say\[)[\"'](\w+)", text)}
    assert len(said) > 20
    assert said <= vocabulary("en").file.say.keys()


def test_another_language_is_a_file_and_an_unknown_one_names_those_there_are() -> None:
    with pytest.raises(SourceNotConfigured, match="en"):
        vocabulary("xx")


def test_a_wrong_key_in_the_file_of_a_language_is_named() -> None:
    raw: dict[str, Any] = {
        **vocabulary("en").file.model_dump(by_alias=True),
        "fillerz": ["the"],
    }
    with pytest.raises(ConfigError, match="fillerz"):
        build_vocabulary("en", raw)
    raw.pop("fillerz")
    with pytest.raises(ConfigError, match=r"say\.all: missing"):
        build_vocabulary("en", {**raw, "say": {"count": "number"}})


def test_a_language_is_chosen_among_those_in_use() -> None:
    question = "Flüsse länger als 1000 km"
    assert language_of(question) == "de"
    assert words_for(("en", "he"), question).language == "en"
    assert words_for(("he", "de"), "rivers").language == "de"
    with pytest.raises(SourceNotConfigured, match="xx"):
        words_for(("xx",), question)


def test_words_of_languages_that_are_not_needed_are_never_loaded() -> None:
    script = """
from groundhook.handlers.db.question import vocabulary
loaded = []
made = vocabulary.build_vocabulary
vocabulary.build_vocabulary = lambda language, raw: loaded.append(language) or made(language, raw)
from groundhook.handlers.db.question.languages import words_for
assert loaded == [], loaded
words_for(("de", "he"), "Flüsse länger als 1000 km")
words_for("auto", "נהרות")
words_for("auto", "what are the most expensive ones")
print(loaded)
"""
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    assert run.stdout.strip() == "['de', 'he', 'en']"
