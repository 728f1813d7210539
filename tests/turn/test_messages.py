"""Sentences of the host for people: in the language of the conversation, and the package's own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from groundhook.core.language.catalogue import languages
from groundhook.core.language.phrases import phrases, pleasantry
from groundhook.core.ports import Handler
from groundhook.core.settings import MessageSettings
from groundhook.core.types.search import SearchType
from groundhook.host.testing.canned import CannedSource
from tests.conftest import MakeApp
from tests.parts.turns import app_with, end, of, run

NOTHING: Mapping[SearchType, Handler] = {"kb": CannedSource({"*": ()})}
OWN = "Ask us at help@example.org."


def package(connector: str = "extractive", **messages: Any) -> str:
    return json.dumps(
        {
            "name": "A",
            "connector": connector,
            "search": {"kb": True},
            "kb": {"collections": ["docs"]},
            "messages": messages,
        }
    )


async def test_a_package_writes_its_own_sentences(make_app: MakeApp) -> None:
    app = app_with(make_app, package(nothing_found=OWN, hello="Ahoy!"))
    assert end(await run(app, "Why are bananas bent?", sources=NOTHING)).content == OWN
    assert end(await run(app, "Hello!", sources=NOTHING)).content == "Ahoy!"
    assert end(await run(app, "Thanks!", sources=NOTHING)).content == "You are welcome."


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("Why are bananas bent?", "Nothing."),
        ("Warum ist die Banane krumm?", "Nichts."),
        ("Pourquoi les bananes sont-elles courbes ?", "Nothing."),
    ],
)
async def test_a_package_writes_them_for_each_language(
    make_app: MakeApp, question: str, said: str
) -> None:
    app = app_with(make_app, package(nothing_found={"en": "Nothing.", "de": "Nichts."}))
    assert end(await run(app, question, sources=NOTHING)).content == said


async def test_an_unclear_question_is_answered_in_the_language_of_those_before_it(
    make_app: MakeApp,
) -> None:
    german = {"role": "user", "content": "Wie lange gilt die Garantie der Lampe?"}
    answer = {"role": "assistant", "content": "Zwei Jahre."}
    messages = [german, answer, {"role": "user", "content": "XK-200?"}]
    events = await run(app_with(make_app, package()), messages, sources=NOTHING)
    assert end(events).content == "Ich habe nichts gefunden, was das beantwortet."


async def test_the_locale_decides_where_no_question_does(make_app: MakeApp) -> None:
    events = await run(
        app_with(make_app, package()), "XK-200?", sources=NOTHING, options={"locale": "fr-FR"}
    )
    assert end(events).content == "Je n’ai rien trouvé qui réponde à cela."


async def test_a_model_without_an_answer_is_excused_in_the_readers_language(
    make_app: MakeApp,
) -> None:
    app = app_with(make_app, package("script"))
    events = await run(app, "Wie lange gilt die Garantie?", script=[""])
    assert end(events).content.startswith("Das konnte ich nicht beantworten.")
    assert [each.code for each in of(events, "warning")] == ["answer_empty"]


async def test_a_greeting_is_not_searched_unless_the_request_wants_it(make_app: MakeApp) -> None:
    app = app_with(make_app, package())
    events = await run(app, "Good morning!", sources=NOTHING)
    assert of(events, "search_start") == []
    assert end(events).certainty is None
    forced = await run(app, "Good morning!", sources=NOTHING, search=True)
    assert len(of(forced, "search_start")) == 1


def test_every_language_that_quotes_has_every_sentence() -> None:
    keys = MessageSettings.model_fields.keys()
    for code, each in languages().items():
        if each.lines("quoting"):
            found = {line.partition(": ")[0] for line in each.lines("quoting")}
            assert found == keys, code
            assert each.lines("greetings"), code
            assert each.lines("thanks"), code


@pytest.mark.parametrize(
    "question", ["", "hello world program", "hi " * 100, "thanks for nothing?", "What is hello?"]
)
def test_a_question_is_no_pleasantry(question: str) -> None:
    assert pleasantry(question) is None


def test_a_greeting_of_several_languages_follows_the_locale() -> None:
    assert pleasantry("Hallo!", "nl") == ("hello", "nl")
    assert pleasantry("Hallo!", "de-AT") == ("hello", "de")
    assert phrases("quoting", "Hola")["hello"].startswith("¡Hola!")
