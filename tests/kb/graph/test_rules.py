"""Which names the rules see, in which scripts, and what they make of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundhook.handlers.kb.graph.names import key_of, kind_of
from groundhook.handlers.kb.graph.rules import (
    EntityRelation,
    KnownNames,
    PassageEntities,
    extract,
    names_in,
)

NOBODY = KnownNames(names={})


def known(*names: str) -> KnownNames:
    return KnownNames(names={key_of(name): (name, "term") for name in names})


def kinds(extracted: PassageEntities) -> dict[str, str]:
    return {mention.name: mention.kind for mention in extracted.mentions}


def test_capitalised_words_are_names_and_their_surroundings_say_of_which_kind() -> None:
    text = (
        "In 1895 Pierre Curie (15 May 1859 – 19 April 1906) taught at the University of Paris. The"
        " pump P-204/B of Acme Pumps Ltd. stands at Lake Geneva, says Dr. Weber. She wrote “The"
        " Long Rain”."
    )
    assert kinds(extract(text, "", NOBODY)) == {
        "Pierre Curie": "person",
        "University of Paris": "organization",
        "P-204/B": "code",
        "Acme Pumps Ltd": "organization",
        "Lake Geneva": "place",
        "Weber": "person",
        "The Long Rain": "work",
    }


@pytest.mark.parametrize(
    ("spellings", "key"),
    [
        (["Beyoncé", "BEYONCE", "the Beyonce's", "Beyonce (singer)"], "beyonce"),
        (["צה״ל", "צה״ל (צבא)"], "צה״ל"),
        (["ＡＢＣ", "ABC"], "abc"),
        (["שָׁלוֹם", "שלום"], "שלום"),
    ],
)
def test_spellings_of_one_name_are_one_entity(spellings: list[str], key: str) -> None:
    assert {key_of(spelling) for spelling in spellings} == {key}


@pytest.mark.parametrize(
    ("question", "names", "found"),
    [
        ("how hot should green tea be?", ["Green tea", "Tea"], ["green tea"]),
        ("怎么泡绿茶最好?", ["绿茶", "红茶"], ["绿茶"]),
        ("מתי הוקם חיל הים?", ["חיל הים"], ["חיל הים"]),
        ("מה קורה בחיל הים?", ["חיל הים"], ["חיל הים"]),
        ("متى تأسست القاهرة؟", ["قاهرة"], ["قاهرة"]),
        ("when was it?", ["It", "When"], []),
    ],
)
def test_known_names_are_found_in_questions_however_they_are_written(
    question: str, names: list[str], found: list[str]
) -> None:
    assert names_in(question, known(*names)) == found


@pytest.mark.parametrize(
    ("question", "found"),
    [
        # "Born in Rome, a Director" makes names of both.
        ("Where was the director of Kiss and Tell born?", ["kiss and tell"]),
        ("where was the director of kiss and tell born?", ["kiss and tell"]),
        ("Where was Director born?", ["director"]),
        ("who was the director?", ["director"]),  # nothing surer is named
        ("how is the tea that the director drank made?", ["tea"]),  # what a document is about
        ("which director knows umbra?", ["umbra"]),  # an organization
    ],
)
def test_a_word_in_small_letters_is_a_name_only_where_nothing_surer_is_named(
    question: str, found: list[str]
) -> None:
    named = {
        "kiss and tell": "term",
        "director": "term",
        "born": "work",
        "tea": "term",
        "umbra": "organization",
    }
    assert (
        names_in(
            question,
            KnownNames(names={key: (key, kind) for key, kind in named.items()}),
            {"kiss and tell", "tea"},
        )
        == found
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("爱因斯坦在《自然》上谈到 CERN 和 iPhone 15 以及绿茶。", {"自然", "CERN", "绿茶"}),
        ("アルベルト・アインシュタインは物理学者です。", {"アルベルト・アインシュタイン"}),
        ('הרמטכ"ל ביקר במפעל של Intel בחיפה.', {'הרמטכ"ל', "Intel"}),
    ],
)
def test_scripts_without_capitals_have_what_the_writing_sets_apart(
    text: str, expected: set[str]
) -> None:
    assert kinds(extract(text, "", known("绿茶"))).keys() == expected


def test_neighbours_in_a_sentence_are_related_by_the_words_between_them() -> None:
    found = extract("Radiohead signed to Parlophone. Blur is elsewhere.", "", NOBODY)
    assert found.relations == (
        EntityRelation(source="radiohead", target="parlophone", words="signed to"),
    )


def test_a_last_name_alone_is_the_one_person_who_has_it() -> None:
    found = extract("Marie Curie was born in Warsaw. Curie won twice.", "", NOBODY)
    assert {mention.key: mention.count for mention in found.mentions} == {
        "marie curie": 2,
        "warsaw": 1,
    }
    two = extract("Marie Curie met Pierre Curie. Curie won.", "", NOBODY)
    assert {mention.key for mention in two.mentions} == {"marie curie", "pierre curie", "curie"}


def test_a_document_is_about_its_title_and_finds_it_in_its_text() -> None:
    found = extract("Kiss and Tell is a film with Shirley Temple.", "Kiss and Tell (film)", NOBODY)
    assert found.about == "kiss and tell"
    assert {mention.key: mention.count for mention in found.mentions} == {
        "kiss and tell": 2,
        "shirley temple": 1,
    }


def test_a_single_word_is_no_name_in_a_text_that_capitalises_nouns() -> None:
    german = (
        "Die Lampe steht auf dem Tisch, und das Buch liegt im Regal neben der Tasse. Gestern las"
        " die Mutter in der Küche eine Zeitung, während der Vater mit dem Hund im Garten war. Dort"
        " hörte auch Anna Schmidt das Radio im Flur."
    )
    assert set(kinds(extract(german, "", NOBODY))) == {"Anna Schmidt"}


@given(
    st.text(max_size=300),
    st.text(max_size=30),
    st.lists(st.text(min_size=1, max_size=10), max_size=5),
)
def test_any_text_is_read_and_links_lead_between_its_entities(
    text: str, title: str, names: list[str]
) -> None:
    found = extract(text, title, known(*names))
    keys = [mention.key for mention in found.mentions]
    assert keys == sorted(set(keys))
    assert all(len(mention.name) <= 80 and mention.count > 0 for mention in found.mentions)
    assert {key for link in found.relations for key in (link.source, link.target)} <= set(keys)
    assert found.about in ("", *keys)
    assert extract(text, title, known(*names)) == found


@given(st.text(min_size=1, max_size=40))
def test_a_key_is_the_key_of_itself(name: str) -> None:
    once = key_of(name)
    assert key_of(key_of(once)) == key_of(once)


@given(st.text(max_size=30), st.text(max_size=20), st.text(max_size=20))
def test_every_name_has_a_kind(name: str, before: str, after: str) -> None:
    assert kind_of(name, before, after) in ("person", "organization", "place", "code", "term")
