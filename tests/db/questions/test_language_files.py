"""The files of words: every language says what English says, and mistakes are named."""

from __future__ import annotations

from typing import Any

import pytest

from groundhook.core.errors import ConfigError, SourceNotConfigured
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
