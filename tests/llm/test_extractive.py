"""The connector without a language model: it quotes what was found, cites it, and says what it
is."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence

import anyio
import anyio.lowlevel
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from groundhook.core.ports import Delta, Finished, ModelCall, Notice, TextDelta
from groundhook.core.types.search import Certainty, Item, OtherPlace
from groundhook.core.types.turn import Message
from groundhook.host.llm.candidates import Candidate
from groundhook.host.llm.extractive import ExtractiveConnector
from groundhook.host.llm.lists import announced
from groundhook.host.llm.sentences import Sentence


async def answer(
    question: str, references: Sequence[Item], certainty: Certainty | None = None
) -> str:
    connector = ExtractiveConnector()
    call = ModelCall(
        messages=[Message(role="user", content=question)],
        question=question,
        references=references,
        certainty=certainty,
    )
    async with connector.stream(call) as stream:
        *texts, last = [delta async for delta in stream]
    assert isinstance(last, Finished)
    assert last.finish_reason == "stop"
    return "".join(delta.text for delta in texts if isinstance(delta, TextDelta))


def item(id: str, content: str, title: str = "", score: float = 0.5) -> Item:
    return Item(type="kb", citation_id=f"#ref:{id}", title=title, content=content, score=score)


BERLIN = item(
    "a1b2",
    "# Berlin\n\nBerlin lies on the river Spree. Berlin is the capital of Germany. It has been so"
    " since 1990.\n\nMany people visit it.",
    "Berlin",
)
PARIS = item("c3d4", "Paris lies on the Seine. The capital of France is Paris.", "Paris")


def quotes(text: str) -> list[tuple[str, str]]:
    """[(quotation, marker)] of an answer; the entries of a list are lines of their quotation."""
    return re.findall(r"^- (.*(?:\n  - .*)*) (#ref:\w+)$", text, re.M)


async def test_the_sentence_that_answers_is_quoted_with_its_source_and_the_answer_says_what_it_is() -> (
    None
):
    text = await answer("What is the capital of Germany?", [PARIS, BERLIN])
    assert text.splitlines()[0] == "These passages answer best:"
    assert ("Berlin is the capital of Germany. It has been so since 1990.", "#ref:a1b2") in quotes(
        text
    )
    assert text.index("**Berlin**") < text.index("Berlin is the capital")
    assert "Many people" not in text


async def test_a_sentence_that_points_back_brings_the_one_before_it() -> None:
    text = await answer("Since when, 1990?", [BERLIN])
    assert ("Berlin is the capital of Germany. It has been so since 1990.", "#ref:a1b2") in quotes(
        text
    )


async def test_the_same_sentence_in_two_sources_is_quoted_once() -> None:
    again = item("e5f6", "The capital of Germany is Berlin. Elsewhere it rains.", "Copy", score=0.4)
    assert (
        len(
            [
                quote
                for quote, _ in quotes(await answer("capital of Germany", [BERLIN, again]))
                if "Germany" in quote
            ]
        )
        == 1
    )


async def test_an_answer_stays_short_however_much_was_found() -> None:
    many = [
        item(
            f"a{n}b{n}",
            " ".join(f"Rule {n} part {m} says that limit {m * n} holds." for m in range(30)),
        )
        for n in range(20)
    ]
    found = quotes(await answer("Which limit holds?", many))
    assert 1 <= len(found) <= 4
    assert len({marker for _, marker in found}) <= 3
    assert all(len(quote) <= 1000 for quote, _ in found)


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("How do volcanoes erupt?", "I found nothing that answers this. The nearest passages:"),
        ("איך מתפרצים הרי געש?", "לא מצאתי דבר שעונה על כך. הקטעים הקרובים ביותר:"),
    ],
)
async def test_the_answer_says_in_the_language_of_the_question_that_nothing_fits(
    question: str, said: str
) -> None:
    text = await answer(question, [PARIS, BERLIN], certainty="none")
    assert text.splitlines()[0] == said
    assert 1 <= len(quotes(text)) <= 2
    assert await answer(question, [], certainty="none") == f"{said.partition('. ')[0]}."


async def test_passages_that_are_only_near_are_called_near() -> None:
    text = await answer("What is the capital of Germany?", [PARIS, BERLIN], certainty="partial")
    assert text.splitlines()[0] == "These passages are near, and may not answer it:"


async def test_how_to_get_a_free_answer_is_one_warning_for_the_author_and_no_text_for_readers() -> (
    None
):
    connector = ExtractiveConnector()
    found: list[list[Delta]] = []
    for _ in range(2):
        async with connector.stream(ModelCall(messages=(), question="Why?")) as stream:
            found.append([delta async for delta in stream])
    notices = [[each for each in deltas if isinstance(each, Notice)] for deltas in found]
    assert [len(each) for each in notices] == [1, 0]
    assert "connectors/<name>.conn.yao" in notices[0][0].hint
    text = "".join(each.text for each in found[0] if isinstance(each, TextDelta))
    assert text == "I found nothing that answers this."


@pytest.mark.parametrize(
    ("said", "answered"),
    [
        ("Hello!", "Hello! What would you like to know?"),
        ("hi there", "Hello! What would you like to know?"),
        ("Guten Tag.", "Hallo! Was möchten Sie wissen?"),
        ("¡Hola!", "¡Hola! ¿Qué le gustaría saber?"),
        ("你好", "您好！您想了解什么？"),
        ("Thank you!", "You are welcome."),
        ("Merci beaucoup", "Je vous en prie."),
    ],
)
async def test_a_greeting_and_thanks_are_answered_as_a_person_would(
    said: str, answered: str
) -> None:
    assert await answer(said, [PARIS]) == answered


async def test_a_question_that_begins_with_a_greeting_is_a_question() -> None:
    text = await answer("Hello, what is the capital of France?", [PARIS, BERLIN])
    assert "Paris" in text


async def test_records_of_a_database_are_one_line_each() -> None:
    rows = [
        Item(
            type="db",
            citation_id=f"#ref:r{n}s{n}",
            title=f"Phone {n}",
            content=f"Phone {n}",
            model="product",
            record_id=n,
            data={
                "id": n,
                "name": f"Phone {n}",
                "price": 90 + n,
                "note": None,
                "__yao_team_id": "t",
            },
        )
        for n in range(24)
    ]
    text = await answer("phones under $100", [*rows, PARIS])
    assert "**Phone 0** – price: 90 #ref:r0s0" in text
    assert text.count("**Phone ") == 20
    assert "… and 4 more of the 24 records." in text
    assert "__yao" not in text


async def test_a_record_is_quoted_as_its_content_and_a_figure_with_its_inputs() -> None:
    phone = Item(
        type="db",
        citation_id="#ref:a1b2",
        title="Phone",
        content="Id: 7\nName: Phone\nIn stock: yes",
        record_id=7,
        data={"id": 7, "name": "Phone", "in_stock": True},
    )
    figure = Item(
        type="db",
        citation_id="#ref:c3d4",
        title="Brand: Acme, Average Price: 5",
        content="Brand: Acme\nAverage Price: 5\ncomputed of 2 records of Product",
        data={"brand": "Acme", "avg_price": 5},
    )
    text = await answer("phones", [phone, figure])
    assert "- **Phone** – In stock: yes #ref:a1b2\n" in text
    assert (
        "- **Brand: Acme, Average Price: 5** – computed of 2 records of Product #ref:c3d4" in text
    )


async def test_a_document_whose_collection_declares_fields_is_quoted_like_any_other() -> None:
    text = await answer(
        "What is the capital of Germany?",
        [PARIS, BERLIN.model_copy(update={"data": {"year": 1990}})],
    )
    assert ("Berlin is the capital of Germany. It has been so since 1990.", "#ref:a1b2") in quotes(
        text
    )
    assert "record" not in text


async def test_a_sentence_that_looks_like_a_citation_of_something_else_is_not_quoted() -> None:
    sly = item(
        "a1b2", "The capital of Germany is Bonn #ref:c3d4. The capital of Germany was Bonn.", "Sly"
    )
    best, *_ = quotes(await answer("capital of Germany", [sly, PARIS]))
    assert best == ("The capital of Germany was Bonn.", "#ref:a1b2")


LIMITS = """# Limits

The memory of a job is limited, and so is its time. A job that takes more ends with an error.

| limit | default | what |
|---|---|---|
| `memory_mb` | 512 | memory of a job |
| `seconds` | 30 | time of a job |
"""


async def test_prose_is_quoted_rather_than_rows_unless_the_question_wants_a_value() -> None:
    source = item("a1b2", LIMITS, "Limits")
    prose = (
        "The memory of a job is limited, and so is its time. A job that takes more ends with an"
        " error."
    )
    row = "limit – default – what\n  - `memory_mb` – 512 – memory of a job"
    assert quotes(await answer("How is the memory of a job limited?", [source])) == [
        (prose, "#ref:a1b2")
    ]
    assert (row, "#ref:a1b2") in quotes(await answer("What is the default memory limit?", [source]))


async def test_a_row_of_few_words_answers_a_question_about_a_price() -> None:
    damage = item(
        "g7h8",
        "## Larger damage\n\n| Part | You pay |\n|---|---|\n| Front wheel | 60 € |\n| Battery | 450 € |",
        "Damage",
        score=0.8,
    )
    charging = item(
        "i9j2",
        "Charge the battery between 5 and 30 °C. A full charge takes four and a half hours with the"
        " standard charger.",
        "Charging",
    )
    for question in ("What does the battery cost?", "What do I pay for a broken battery?"):
        first, *_ = quotes(await answer(question, [damage, charging]))
        assert first == ("Part – You pay\n  - Battery – 450 €", "#ref:g7h8")


async def test_a_table_is_quoted_once_with_its_best_rows() -> None:
    prices = item(
        "k3l4",
        "| Kind | Day | Week |\n|---|---|---|\n| City bike | 18 € | 79 € |\n| E-bike | 39 € | 189 € |"
        "\n| Cargo bike | 45 € | 220 € |\n\nA week is seven days.",
        "Rental prices",
    )
    found = [quote for quote, _ in quotes(await answer("How much is an e-bike a week?", [prices]))]
    assert [quote for quote in found if quote.startswith("Kind")] == [
        "Kind – Day – Week\n  - E-bike – 39 € – 189 €"
    ]


async def test_what_is_x_is_answered_by_the_sentence_that_defines_it() -> None:
    source = item(
        "a1b2",
        "Every widget has a serial number. Old widgets are blue. A widget is a small part of a"
        " machine.",
        "Parts",
    )
    assert quotes(await answer("What is a widget?", [source]))[0][0].endswith(
        "A widget is a small part of a machine."
    )
    page = item(
        "c3d4",
        "# Widget\n\nA small part of a machine, made of steel.\n\n## Care\n\nA widget must be"
        " oiled.",
    )
    assert "A small part of a machine" in quotes(await answer("What is a widget?", [page]))[0][0]


@pytest.mark.parametrize("question", ["How do widgets work?", "What does a widget do?"])
async def test_how_something_works_is_answered_by_what_it_is_and_not_by_the_word_works(
    question: str,
) -> None:
    other = item("a1b2", "It works for tables too. A widget works alone, if this is set.", "Setup")
    page = item("c3d4", "A widget is a small part of a machine. It turns a wheel.", "Parts")
    first, *_ = quotes(await answer(question, [other, page]))
    assert first[0].startswith("A widget is a small part of a machine.")


async def test_how_something_is_done_is_answered_by_an_example_and_otherwise_by_prose() -> None:
    page = item(
        "a1b2",
        "# Watching files\n\n```\nfor change in watch('./files'):\n```\n\n",
        "Watching files",
    )
    log = item("c3d4", "Changes: files that are watched are closed at the end.", "Changes", 0.6)
    assert "for change" in (await answer("How do I watch files?", [page, log])).split("#ref")[0]
    assert "closed at" in (await answer("Why are files watched?", [page, log])).split("#ref")[0]


async def test_a_question_with_two_parts_is_answered_in_both() -> None:
    page = item("a1b2", "A widget is a small part of a machine. It is made of steel.", "Widgets")
    care = item("c3d4", "Oil keeps a widget from rusting. Water does not.", "Care")
    text = await answer("What is a widget, and how is it kept from rusting?", [page, care])
    assert [marker for _, marker in quotes(text)] == ["#ref:a1b2", "#ref:c3d4"]
    assert "small part of a machine" in text
    assert "keeps a widget from rusting" in text


async def test_a_sentence_that_announces_a_list_brings_it_and_is_cited_once() -> None:
    source = item(
        "a1b2",
        "# Layers\n\nThere are three layers:\n\n1. the defaults. They are last.\n2. the app\n3. the"
        " request\n\nMore follows.",
    )
    quote, marker = quotes(await answer("Which layers are there?", [source]))[0]
    assert quote.splitlines() == [
        "There are three layers:",
        "  - the defaults. They are last.",
        "  - the app",
        "  - the request",
    ]
    assert marker == "#ref:a1b2"


async def test_a_sentence_that_only_points_elsewhere_is_not_quoted() -> None:
    pointers = (
        "See the page on limits of memory. Limits · Memory · Time · Jobs · Errors. Which limits"
        " hold for memory (see below). The limits of memory are described in the guide."
    )
    source = item("a1b2", f"{pointers} Half a gigabyte of memory is the most.", "Limits")
    assert (
        quotes(await answer("Which limits of memory are there?", [source]))[0][0]
        == "Half a gigabyte of memory is the most."
    )


async def test_sources_that_only_point_elsewhere_answer_nothing() -> None:
    pointing = "For how to configure logging, see [the reference](x). See the guide for details."
    text = await answer("How do I configure logging?", [item("a1b2", pointing, "Docs")])
    assert quotes(text) == []
    told = item("c3d4", f"{pointing} Set LOG_LEVEL (see the list of levels).", "Docs")
    assert quotes(await answer("How do I configure logging?", [told]))[0][0].startswith("Set LOG")


async def test_a_question_with_a_word_spelt_wrong_is_quoted_for_as_if_it_were_right() -> None:
    source = item(
        "a1b2",
        "The lamp is made of brass and can be extended by a second arm. The lamp is washed by"
        " hand. Register within thirty days for the warranty.",
        "Lamp",
    )
    for question in ("How is the warranty extended?", "How is the warrenty extended?"):
        assert "thirty days" in quotes(await answer(question, [source]))[0][0]


async def test_a_list_is_quoted_whole_and_a_very_long_one_says_that_it_goes_on() -> None:
    steps = [f"Step {n} turns the screw. It takes a minute." for n in range(1, 13)]
    listed = "\n".join(f"{n}. {step}" for n, step in enumerate(steps, 1))
    source = item("a1b2", f"Follow these steps of the installation:\n\n{listed}", "Lamp")
    text = await answer("Which steps does the installation have?", [source])
    assert all(step in text for step in steps)
    long = "\n".join(f"- color number {n}" for n in range(1, 40))
    source = item("a1b2", f"These colors are sold:\n\n{long}", "Lamp")
    shown = (await answer("Which colors are sold?", [source])).splitlines()
    assert shown[-2:] == ["  - color number 20", "  - … #ref:a1b2"]


async def test_entries_that_are_no_sentences_are_quoted_with_their_whole_list() -> None:
    source = item("a1b2", "## Sizes\n\n- small\n- large, for adults\n- huge", "Shirts")
    text = await answer("Which size is for adults?", [source])
    assert text.splitlines()[-3:] == ["- small", "- large, for adults", "- huge #ref:a1b2"]


async def test_a_passage_of_several_documents_is_quoted_once_with_all_titles() -> None:
    both = BERLIN.model_copy(update={"also": (OtherPlace(title="Brandenburg"),)})
    text = await answer("What is the capital of Germany?", [both])
    assert "**Berlin, Brandenburg**" in text


async def test_quoted_code_keeps_its_lines_and_its_marker_is_outside_of_it() -> None:
    code = "    for city in cities:\n\t    print(city)   # | a |\n\n    - done    with   columns"
    passage = f"The capitals are printed like this:\n\n{code}\nTrains run on rails.\n\nShips sail."
    text = await answer("How are the capitals printed?", [item("a1b2", passage)])
    shown = (
        "  ```\n  for city in cities:\n      print(city)   # | a |\n\n  - done    with   columns\n "
        " ```\n  #ref:a1b2"
    )
    assert f"- The capitals are printed like this:\n{shown}" in text
    assert "Trains" not in text.partition(shown)[0]


async def test_code_that_holds_a_fence_is_quoted_in_a_longer_one() -> None:
    passage = "The capitals are printed like this:\n\n    ```` text\n    Berlin\n    ````\n"
    text = await answer("How are the capitals printed?", [item("a1b2", passage)])
    assert "  `````\n  ```` text\n  Berlin\n  ````\n  `````\n  #ref:a1b2" in text


SERVED = "serve --port 8080 \\\n  --host localhost"


@pytest.mark.parametrize(
    "lead", ["To start the server run this:", "- To start the server run this:"]
)
async def test_what_a_sentence_announces_in_a_fence_is_quoted_between_it_and_what_follows(
    lead: str,
) -> None:
    passage = f"# Code\n\n{lead}\n\n```sh\n{SERVED}\n```\n\nThen look at `http://localhost:8080`.\n"
    text = await answer("How do I start the server on a port?", [item("a1b2", passage)])
    shown = SERVED.replace("\n", "\n  ")
    assert f"- To start the server run this:\n  ```\n  {shown}\n  ```\n  #ref:a1b2" in text
    assert "this: Then" not in text


@pytest.mark.parametrize("title", ["4. How long varnish takes.", "How long does varnish take?"])
@pytest.mark.parametrize("between", [" ", "\n", "\n\n"])
async def test_a_quotation_never_ends_right_before_its_answer(title: str, between: str) -> None:
    passage = f"Paint is wet at first.\n\n{title}{between}Two days pass before anyone may enter."
    text = await answer("How long does varnish take?", [item("a1b2", passage)])
    assert "Two days pass before anyone may enter." in text


@pytest.mark.parametrize("between", ["```\n{ }\n```", "## Elsewhere"])
async def test_sentences_that_stood_apart_are_quoted_apart(between: str) -> None:
    passage = f"The port of the server is 8080.\n\n{between}\n\nEvery port of the server is open."
    text = await answer("Which port has the server?", [item("a1b2", passage)])
    assert {quote for quote, _ in quotes(text)} == {
        "The port of the server is 8080.",
        "Every port of the server is open.",
    }


async def test_fenced_code_is_quoted_and_separates_its_lead_from_the_text_after_it() -> None:
    source = item(
        "a1b2",
        "The capital is set like this:\n\n```\ncapital = 1\n```\n\n- Trains run.\n- Ships sail.",
    )
    text = await answer("How is the capital set?", [source])
    assert "- The capital is set like this:\n  ```\n  capital = 1\n  ```\n  #ref:a1b2" in text
    assert "Trains" not in text


async def test_code_that_answers_is_quoted_below_its_heading_or_with_the_sentence_above_it() -> (
    None
):
    page = (
        "## Varnish\n\nVarnish has two coats.\n\n"
        "```\nbrush(coats=2)  # the second coat dries a day\n```\n\n"
        "## Print capitals\n\n```\ncapitals.print()\n```\n"
    )
    text = await answer("How do I print capitals?", [item("a1b2", page, "Paint")])
    assert "**Paint › Print capitals**\n```\ncapitals.print()\n```\n#ref:a1b2" in text
    text = await answer("How long does the second coat of varnish dry?", [item("a1b2", page)])
    assert "Varnish has two coats.\n  ```\n  brush(coats=2)" in text


async def test_a_quotation_is_below_its_own_heading_and_not_the_first_of_its_passage() -> None:
    page = (
        "## Ships\n\nShips sail.\n\n## Trains\n\nTrains run on rails.\n\n"
        "**Sleepers**\n\nSleepers are made of oak."
    )
    source = item("a1b2", page, "Travel › Ships")
    assert "**Travel › Trains**\n- Trains run" in await answer("What do trains run on?", [source])
    text = await answer("What are sleepers made of?", [source])
    assert "**Travel › Trains › Sleepers**\n- Sleepers are made of oak." in text


async def test_an_entry_that_announces_entries_is_quoted_with_these() -> None:
    page = "- Reads tags\n- Supported formats:\n  - FLAC\n  - Opus\n- No dependencies"
    text = await answer("Which formats are supported?", [item("a1b2", page)])
    assert "- Supported formats:\n  - FLAC\n  - Opus #ref:a1b2" in text
    text = await answer("Does it have dependencies?", [item("a1b2", page)])
    assert "- Supported formats:\n  - FLAC\n  - Opus\n- No dependencies #ref:a1b2" in text


async def test_a_sure_answer_quotes_no_document_that_lacks_what_is_asked() -> None:
    tqdm = item("a1b2", "A coloured bar shows the progress of a loop and guesses its end.", "tqdm")
    trees = "Oaks are old. Elms are tall. Firs are green. Limes are sweet."
    other = item("c3d4", f"A bar shows the progress of water through sand. {trees}", "Filters")
    question = "What shows progress by a coloured bar?"
    assert "Filters" not in await answer(question, [tqdm, other], "sure")
    assert "Filters" in await answer(question, [tqdm, other], "partial")
    both = item(
        "c3d4", f"Rich shows progress of downloads and copies by a coloured bar. {trees}", "Rich"
    )
    assert "Rich" in await answer(question, [tqdm, both], "sure")


def test_a_long_list_of_entries_that_announce_others_is_soon_looked_through() -> None:
    entries = [
        Candidate(0, at, Sentence("port:", at, kind="entry", depth=1 + at % 2))
        for at in range(4_000)
    ]
    began = time.process_time()
    assert [announced(at, entries) for at in (0, 2)] == [[1], [3]]
    assert sum(len(announced(at, entries)) for at in range(len(entries))) == 2_000
    # A hundredth of it, where no entry reads the whole list.
    assert time.process_time() - began < 2


async def test_the_rest_of_a_sentence_is_quoted_with_its_beginning() -> None:
    page = "Triggers run by the script as\n\n   postinst triggered\n\nby passing a list of names."
    text = await answer("By passing what?", [item("a1b2", page)])
    assert "postinst triggered by passing a list of names." in text


@pytest.mark.parametrize(
    ("question", "content", "sentence"),
    [
        (
            "מה בירת ישראל?",
            "העיר תל אביב גדולה. ירושלים היא בירת ישראל. יש בה אוניברסיטה.",
            "ירושלים היא בירת ישראל.",
        ),
        (
            "中国的首都是哪里？",
            "上海是最大的城市。北京是中国的首都。\n\n广州在南方。",
            "北京是中国的首都。",
        ),
        (
            "Was ist die Hauptstadt von Österreich?",
            "Graz liegt an der Mur. Wien ist die Hauptstadt von Österreich.",
            "Wien ist die Hauptstadt von Österreich.",
        ),
    ],
)
async def test_other_languages_and_scripts_are_answered_too(
    question: str, content: str, sentence: str
) -> None:
    assert quotes(await answer(question, [item("a1b2", content)]))[0][0] == sentence


async def test_the_question_may_come_from_the_messages_alone() -> None:
    call = ModelCall(
        messages=[Message(role="user", content="capital of Germany")], references=[BERLIN]
    )
    async with ExtractiveConnector().stream(call) as stream:
        text = "".join([delta.text async for delta in stream if isinstance(delta, TextDelta)])
    assert "Berlin is the capital of Germany." in text


SCRAPS = (
    "Berlin capital river Germany is the of. in big! It 1990? rivers: **bold** - | # `code`"
    " #ref:zz99"
)
LAYOUT = [
    "\n",
    "\n\n",
    "\n- ",
    "\n    ",
    "\n```\n",
    "\n| name | capital |\n|---|---|\n| Berlin | yes |\n| river | #ref:zz99 |\n",
]
WORDS = st.lists(st.sampled_from([*SCRAPS.split(), *LAYOUT]), max_size=60)


@given(st.lists(WORDS.map(" ".join), max_size=6), WORDS.map(" ".join))
@example(["# #ref:zz99 \n Berlin"], "Berlin")
@example(
    ["| Berlin capital \n| name | capital |\n|---|---|\n| Berlin | yes |\n Berlin Berlin"], "Berlin"
)
async def test_every_quotation_is_from_the_item_it_cites_and_every_marker_was_offered(
    contents: list[str], question: str
) -> None:
    references = [item(f"k{n}x{n}", content, score=n / 10) for n, content in enumerate(contents)]
    by_marker = {reference.citation_id: reference for reference in references}
    text = await answer(question, references)
    assert set(re.findall(r"#ref:\w+", text)) <= set(by_marker)
    for quote, marker in quotes(text):
        words = iter(re.findall(r"\w+", by_marker[marker].content))
        assert all(word in words for word in re.findall(r"\w+", quote))


async def test_a_title_that_begins_its_text_is_not_quoted_below_itself() -> None:
    about = item("a1b2", "Air quality\n\nHourly values of ozone at 31 stations.", "Air quality")
    text = await answer("Which datasets are there about air quality?", [about])
    assert "**Air quality**\n- Hourly values of ozone at 31 stations. #ref:a1b2" in text
    alone = await answer("air quality", [item("a1b2", "Air quality", "Air quality")])
    assert "- Air quality #ref:a1b2" in alone


async def test_long_sources_are_read_while_others_have_their_turn() -> None:
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await anyio.lowlevel.checkpoint()

    long = item("a1b2", "Tea takes four minutes, and water boils. " * 1000)
    call = ModelCall(messages=[], question="How long does tea take?", references=[long])
    with anyio.fail_after(60):
        async with ExtractiveConnector().stream(call) as stream, anyio.create_task_group() as tasks:
            tasks.start_soon(others)
            await anext(stream)
            tasks.cancel_scope.cancel()
    assert turns > 0
