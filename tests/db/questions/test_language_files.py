"""The files of words: every language says what English says, and mistakes are named."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from groundhook.core.errors import ConfigError, SourceNotConfigured
from groundhook.handlers.db.question.languages import language_of, words_for
from groundhook.handlers.db.question.vocabulary import build_vocabulary, languages, vocabulary


@pytest.mark.parametrize("language", languages())
def test_every_language_says_all_that_english_says(language: str) -> None:
    english, own = vocabulary("en").file, vocabulary(language).file
    assert set(own.comparisons) == set(english.comparisons)
    assert set(own.figures) == set(english.figures)
    assert set(own.dates.units) == set(english.dates.units)
    assert (len(own.dates.months), len(own.dates.weekdays)) == (12, 7)


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
