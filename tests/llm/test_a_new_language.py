"""A language is one file: follow-ups, keywords and quoting read it from there."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from groundhook.core.language import catalogue, detect, terms
from groundhook.handlers.web import keywords
from groundhook.host.llm import questions
from groundhook.host.turn import follow_up_languages
from groundhook.host.turn.follow_up import stand_alone

# Made up: no word of it is a word of another language.
MADE_UP = """\
# Verlish.
name verlish
script latin

[frequent]
zor quemf tib

[function]
zor quemf tib vel nusk ploth

[asking]
grimba

[follow-up openers]
sib nusk

[follow-up pronouns]
plothu

[follow-up expletives]

[asks number]
\\bkwanto\\b

[asks value]
\\blimitu\\b

[asks what]
wazzit

[subject ends]
vel

[joining questions]
ond

[opening questions]
grimba kwanto

[referring back]
plothu
"""


@pytest.fixture
def verlish(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    caches = (
        catalogue.languages,
        catalogue.all_words,
        detect._knowing,
        terms._stop_words,
        keywords._stems,
        keywords._leads,
        follow_up_languages._known,
        questions._asks_number,
        questions._asks_value,
        questions._asks_what,
        questions._subject_ends,
        questions._between_parts,
        questions._refers_back,
    )
    folder = shutil.copytree(catalogue.FOLDER, tmp_path / "words")
    (folder / "vx.txt").write_text(MADE_UP, encoding="utf-8")
    monkeypatch.setattr(catalogue, "FOLDER", folder)
    for cached in caches:
        cached.cache_clear()
    yield
    monkeypatch.undo()
    for cached in caches:
        cached.cache_clear()


@pytest.mark.usefixtures("verlish")
def test_a_file_makes_a_language_for_detection_keywords_follow_ups_and_quoting() -> None:
    question = "Grimba zor quemf limbor tib vel frangol?"
    assert detect.detect(question, question=True) == "vx"
    assert keywords.extract(question).query == "limbor frangol"
    assert terms.terms(question) == ["limbor", "frangol"]
    followed = stand_alone("Sib nusk plothu?", ["Zor quemf limbor vel frangol?"])
    assert followed.carried == ("limbor", "frangol")


@pytest.mark.usefixtures("verlish")
def test_a_file_says_what_questions_of_its_language_ask_for() -> None:
    first, second = questions.parts("Wazzit limbor ond kwanto frangol plothu?")
    assert (first.subject, first.number) == (frozenset({"limbor"}), False)
    assert (second.text, second.number, second.about) == (
        "kwanto frangol plothu",
        True,
        frozenset({"limbor", "wazzit"}),
    )
    [value] = questions.parts("Wazzit limitu vel frangol?")
    assert (value.value, value.subject) == (True, frozenset())


def test_without_its_file_the_language_is_unknown() -> None:
    assert detect.detect("Grimba zor quemf limbor tib vel frangol?", question=True) == ""
