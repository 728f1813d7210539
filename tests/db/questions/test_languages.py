"""Questions in German and Hebrew about models with names in these languages, and which languages are
read."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from groundhook.core.errors import SourceNotConfigured
from groundhook.core.types.model_spec import ModelSpec
from groundhook.handlers.db.model.schema import Schemas
from groundhook.handlers.db.question.languages import AUTO, language_of, words_for
from groundhook.handlers.db.question.lexicons import Lexicons, Offer
from groundhook.handlers.db.question.reading import read_question
from tests.db.questions.models import NOW, choice, column, conditions, date, number

MODELS: dict[str, tuple[str, str, list[dict[str, Any]]]] = {
    "wohnung": (
        "Wohnung",
        "",
        [
            column("stadt", label="Stadt"),
            number("flaeche", "Wohnfläche", "m²"),
            number("miete", "Miete"),
            number("baujahr", "Baujahr"),
            date("frei_ab", "Frei ab"),
            column("moebliert", "boolean", "Möbliert"),
        ],
    ),
    "mitarbeiter": (
        "Mitarbeiter",
        "",
        [
            column("name", label="Name"),
            date("geboren", "Geburtsdatum"),
            date("eingestellt", "Eingestellt"),
            number("gehalt", "Gehalt"),
            column("sprachen", label="Sprachen"),
            column("stadt", label="Stadt"),
            number("groesse", "Körpergröße", "cm"),
            choice("status", "Status", "aktiv", "beurlaubt"),
        ],
    ),
    "fluss": (
        "Fluss",
        "Flüsse",
        [
            column("name", label="Name"),
            number("laenge", "Länge", "km"),
            number("breite", "Breite", "Meter"),
        ],
    ),
    "rofe": (
        "רופא",
        "רופאים, רופאה",
        [
            column("name", label="שם"),
            date("born", "תאריך לידה"),
            date("hired", "תאריך קליטה"),
            number("salary", "שכר"),
            column("languages", label="שפות"),
            column("city", label="עיר"),
            column("active", "boolean", "פעיל"),
        ],
    ),
    "nahar": (
        "נהר",
        "נהרות",
        [
            column("name", label="שם"),
            number("length", "אורך", 'ק"מ'),
            number("width", "רוחב", "מטר"),
        ],
    ),
    "havila": (
        "חבילה",
        "חבילות",
        [number("weight", "משקל", 'ק"ג'), number("price", "מחיר"), date("sent", "נשלח")],
    ),
}
SAMPLES: dict[str, dict[str, tuple[str, ...]]] = {
    "wohnung": {"stadt": ("Berlin", "Köln")},
    "mitarbeiter": {
        "name": ("Anna Beck",),
        "sprachen": ("Deutsch, Englisch", "Deutsch", "Englisch, Polnisch", "Polnisch, Deutsch"),
        "stadt": ("Berlin", "Hamburg"),
    },
    "fluss": {"name": ("Elbe", "Rhein")},
    "rofe": {
        "name": ("דנה לוי",),
        "languages": ("עברית, אנגלית", "עברית", "אנגלית, צרפתית", "צרפתית, עברית"),
        "city": ("חיפה", "תל אביב"),
    },
    "nahar": {"name": ("ירדן", "ירקון")},
    "havila": {},
}
SPECS = {
    id: ModelSpec.model_validate(
        {
            "id": id,
            "name": name,
            "table": {"name": id, "comment": comment},
            "columns": [column("id", "ID"), *columns],
        }
    )
    for id, (name, comment, columns) in MODELS.items()
}
SCHEMAS = Schemas(SPECS)
LEXICONS = Lexicons()


@pytest.mark.parametrize(
    ("model", "question", "found"),
    [
        # units
        ("wohnung", "Wohnungen größer als 80 m²", "flaeche > 80"),
        ("wohnung", "Wohnungen über 80 Quadratmeter", "flaeche > 80"),
        ("mitarbeiter", "Mitarbeiter größer als 180 cm", "groesse > 180"),
        ("mitarbeiter", "Mitarbeiter über 1,80 m", "groesse > 180"),
        ("fluss", "Flüsse länger als 1000 km", "laenge > 1000"),
        ("fluss", "Flüsse über 500 Kilometer lang", "laenge > 500"),
        ("fluss", "Flüsse breiter als 0,3 km", "breite > 300"),
        ("fluss", "wie lang ist die Elbe?", "name = Elbe"),
        ("nahar", 'נהרות ארוכים מ-100 ק"מ', "length > 100"),
        ("nahar", "נהרות ארוכים יותר מ-100 קילומטר", "length > 100"),
        ("nahar", "נהרות רחבים מ-50 מטר", "width > 50"),
        ("nahar", "כמה ארוך הירדן", "name = ירדן"),
        ("havila", "חבילות כבדות מ-500 גרם", "weight > 0.5"),
        # ages and what verbs name
        ("mitarbeiter", "Mitarbeiter über 60", "geboren <= 1965-11-12"),
        ("mitarbeiter", "Mitarbeiter älter als 50", "geboren <= 1975-11-12"),
        ("mitarbeiter", "Mitarbeiter unter 30 Jahren", "geboren > 1996-11-12"),
        ("mitarbeiter", "wie alt ist Anna Beck", "name = Anna Beck"),
        ("mitarbeiter", "Mitarbeiter seit 2015", "eingestellt >= 2015-01-01"),
        ("mitarbeiter", "Mitarbeiter, die mehr als 50000 verdienen", "gehalt > 50000"),
        ("wohnung", "Wohnungen älter als 50 Jahre", "baujahr < 1976"),
        ("wohnung", "Wohnungen vor 1950 gebaut", "baujahr < 1950"),
        ("rofe", "רופאים מעל גיל 60", "born <= 1965-11-12"),
        ("rofe", "רופאים מבוגרים מ-50", "born <= 1975-11-12"),
        ("rofe", "רופאים בני 40", "born > 1985-11-12 and born <= 1986-11-12"),
        ("rofe", "בת כמה דנה לוי", "name = דנה לוי"),
        ("rofe", "רופאים מאז 2015", "hired >= 2015-01-01"),
        # periods
        (
            "mitarbeiter",
            "in den vergangenen 6 Monaten eingestellte Mitarbeiter",
            "eingestellt >= 2026-05-12 and eingestellt < 2026-11-13",
        ),
        (
            "mitarbeiter",
            "Mitarbeiter im letzten halben Jahr eingestellt",
            "eingestellt >= 2026-05-12 and eingestellt < 2026-11-13",
        ),
        (
            "rofe",
            "רופאים שנקלטו בשלושת החודשים האחרונים",
            "hired >= 2026-08-12 and hired < 2026-11-13",
        ),
        (
            "havila",
            "חבילות שנשלחו בשבועיים האחרונים",
            "sent >= 2026-10-29 and sent < 2026-11-13",
        ),
        # negations and lists
        (
            "mitarbeiter",
            "Mitarbeiter, die kein Englisch sprechen",
            "sprachen match none ['Englisch']",
        ),
        ("mitarbeiter", "Mitarbeiter, die Polnisch sprechen", "sprachen like Polnisch"),
        ("mitarbeiter", "Mitarbeiter, die nicht in Berlin wohnen", "stadt != Berlin"),
        ("mitarbeiter", "welche inaktiven Mitarbeiter haben wir", "status != aktiv"),
        ("wohnung", "zeige unmöblierte Wohnungen", "moebliert = False"),
        ("rofe", "רופאים שלא מדברים אנגלית", "languages match none ['אנגלית']"),
        ("rofe", "רופאים דוברי עברית", "languages like עברית"),
        ("rofe", "רופאים שלא מחיפה", "city != חיפה"),
        ("rofe", "רופאים לא פעילים", "active = False"),
    ],
)
def test_a_question_becomes_its_conditions(model: str, question: str, found: str) -> None:
    offer = Offer(SCHEMAS[model], SAMPLES[model])
    (reading,) = read_question(question, [offer], words_for(AUTO, question), NOW, LEXICONS)
    assert (conditions(reading), reading.not_understood) == (found, ())


@pytest.mark.parametrize(
    ("model", "question", "word"),
    [
        ("wohnung", "große Wohnungen in Berlin", "große"),
        ("mitarbeiter", "nette Mitarbeiter in Berlin", "nette"),
        ("fluss", "lange Flüsse", "lange"),
        ("nahar", "נהרות ארוכים", "ארוכים"),
        ("havila", "חבילות כבדות", "כבדות"),
        ("mitarbeiter", "Mitarbeiter, die 2019 befördert wurden", "2019"),
        ("mitarbeiter", "wer ist noch angestellt", "angestellt"),
        ("mitarbeiter", "wer arbeitet", "arbeitet"),
        ("mitarbeiter", "wie viel haben wir im Oktober verdient", "verdient"),
        ("rofe", "מי עובד", "עובד"),
        ("rofe", "רופאים שעובדים", "עובדים"),
    ],
)
def test_a_word_that_nothing_defines_is_reported(model: str, question: str, word: str) -> None:
    offer = Offer(SCHEMAS[model], SAMPLES[model])
    (reading,) = read_question(question, [offer], words_for(AUTO, question), NOW, LEXICONS)
    assert word in " ".join(reading.not_understood).split()
    assert "eingestellt" not in conditions(reading)


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
