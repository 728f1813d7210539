"""What queries can ask beyond single records: figures of groups, parts of dates, related records,
other fields, ties, pages. The expected results are computed here from generated rows, on SQLite,
PostgreSQL and MariaDB."""

from __future__ import annotations

import json
import operator
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import date, datetime, timedelta
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from groundhook.core.errors import SourceError
from groundhook.core.ports import SourceResult
from groundhook.core.types.model_spec import ModelSpec
from groundhook.handlers.db.database import open_database
from groundhook.handlers.db.model.schema import Schemas
from groundhook.handlers.db.query.dsl import parse
from groundhook.handlers.db.question.languages import words_for
from groundhook.handlers.db.question.sentence import Teller
from tests.db.conftest import Fresh, Shop

Row = dict[str, Any]
CITIES = ("Berlin", "Oslo", "Zürich", "oslo")
SEED = 7


def _rows() -> tuple[list[Row], list[Row]]:
    chance = Random(SEED)
    people = [
        {"id": id, "name": f"c{id}", "city": chance.choice(CITIES), "credit": chance.randrange(5)}
        for id in range(1, 31)
    ]
    bills = []
    for id in range(1, 161):
        paid = datetime(2023, 12, 25) + timedelta(minutes=chance.randrange(3 * 365 * 24 * 60))
        due = paid.date() + timedelta(days=chance.randrange(-3, 4))
        bills.append(
            {
                "id": id,
                "payer_id": chance.choice([None, *range(1, 26)]),
                "receiver_id": chance.choice([None, *range(1, 31)]),
                "total": chance.randrange(20),
                "open": chance.choice([None, *range(20)]),
                "paid_at": None if chance.random() < 0.2 else str(paid),
                "due": str(due),
                "note": chance.choice(["a", "A", "b", None]),
                "label": chance.choice(["a", "B", "c"]),
                "currency": "EUR",
            }
        )
    return people, bills


PEOPLE, BILLS = _rows()
MODELS: list[Row] = [
    {
        "id": "person",
        "name": "Person",
        "table": {"name": "q_person"},
        "columns": [
            {"name": "id", "type": "ID"},
            {"name": "name", "type": "string"},
            {"name": "city", "type": "string"},
            {"name": "credit", "type": "integer"},
        ],
        "relations": {
            "bills": {"type": "hasMany", "model": "bill", "key": "payer_id", "foreign": "id"},
            "received": {"type": "hasMany", "model": "bill", "key": "receiver_id", "foreign": "id"},
        },
        "values": PEOPLE,
    },
    {
        "id": "bill",
        "name": "Bill",
        "table": {"name": "q_bill"},
        "columns": [
            {"name": "id", "type": "ID"},
            {"name": "payer_id", "type": "bigInteger", "nullable": True},
            {"name": "receiver_id", "type": "bigInteger", "nullable": True},
            {"name": "total", "type": "decimal", "precision": 10, "scale": 2},
            {"name": "open", "type": "integer", "nullable": True},
            {"name": "paid_at", "type": "datetime", "nullable": True},
            {"name": "due", "type": "date"},
            {"name": "note", "type": "string", "nullable": True},
            {"name": "label", "type": "string"},
            {"name": "currency", "type": "string"},
        ],
        "relations": {
            "payer": {"type": "hasOne", "model": "person", "key": "id", "foreign": "payer_id"},
            "receiver": {
                "type": "hasOne",
                "model": "person",
                "key": "id",
                "foreign": "receiver_id",
            },
        },
        "values": BILLS,
    },
]
SPECS = {str(raw["id"]): ModelSpec.model_validate(raw) for raw in MODELS}
PERSON = {row["id"]: row for row in PEOPLE}


@pytest.fixture(scope="session")
async def bills_url(fresh_database: Fresh) -> str:
    url = await fresh_database()
    async with open_database(url, 20_000, SPECS) as database:
        await database.load()
    return url


@pytest.fixture
async def bills(bills_url: str) -> AsyncIterator[Shop]:
    async with open_database(bills_url, 20_000, SPECS) as database:
        yield Shop(database, bills_url)


async def ids(shop: Shop, model: str, *wheres: Row, **more: Any) -> list[Any]:
    found = await ask(shop, model, wheres=wheres, limit=1000, **more)
    assert found.total == len(found.items)
    return sorted(item.record_id for item in found.items)


async def ask(shop: Shop, model: str, **more: Any) -> SourceResult:
    return await shop.search(f"list all {model}s", model, **more)


def data(found: SourceResult) -> list[Any]:
    return [item.data for item in found.items]


def paid(row: Row) -> datetime | None:
    return None if row["paid_at"] is None else datetime.fromisoformat(row["paid_at"])


# ------------------------------------------------------------------------------------------- groups


def _week(day: date) -> str:
    year, week, _ = day.isocalendar()
    return f"{year}-W{week:02}"


PARTS: dict[str, Callable[[Any], Any]] = {
    "year": lambda when: when.year,
    "quarter": lambda when: f"{when.year}-Q{(when.month + 2) // 3}",
    "month": lambda when: f"{when:%Y-%m}",
    "week": _week,
    "day": lambda when: f"{when:%Y-%m-%d}",
    "weekday": lambda when: when.isoweekday(),
    "hour": lambda when: when.hour,
}


@pytest.mark.parametrize("field", ["paid_at", "due"])
@pytest.mark.parametrize("by", PARTS)
async def test_parts_of_dates_are_the_same_on_every_engine_and_in_order_of_time(
    bills: Shop, field: str, by: str
) -> None:
    if (field, by) == ("due", "hour"):
        return
    read = paid if field == "paid_at" else lambda row: date.fromisoformat(row["due"])
    whens = [read(row) for row in BILLS]
    counts = Counter(None if when is None else PARTS[by](when) for when in whens)
    found = await ask(
        bills,
        "bill",
        group_by=[{"field": field, "by": by, "as": "part"}],
        aggregates=[{"function": "count"}],
        limit=1000,
    )
    parts = sorted(counts, key=lambda part: (part is None, part))
    assert data(found) == [{"part": part, "count": counts[part]} for part in parts]


async def test_groups_without_an_order_are_sorted_by_the_figure_descending(bills: Shop) -> None:
    totals: dict[Any, int] = defaultdict(int)
    for row in BILLS:
        totals[row["label"]] += row["total"]
    found = await ask(
        bills, "bill", group_by=["label"], aggregates=[{"function": "sum", "field": "total"}]
    )
    best = sorted(totals, key=lambda label: -totals[label])
    assert data(found) == [{"label": label, "sum_total": totals[label]} for label in best]
    given = await ask(
        bills,
        "bill",
        group_by=["label"],
        aggregates=[{"function": "sum", "field": "total"}],
        orders=[{"field": "label", "order": "asc"}],
    )
    assert [one["label"] for one in data(given)] == sorted(totals, key=str)


@pytest.mark.parametrize(
    ("havings", "kept"),
    [
        ([{"field": "count", "op": ">", "value": 6}], lambda count, total: count > 6),
        (
            [
                {"field": "count", "op": "between", "value": [3, 8]},
                {"field": "revenue", "op": "<", "value": 70},
            ],
            lambda count, total: 3 <= count <= 8 and total < 70,
        ),
        (
            [
                {
                    "or": [
                        {"field": "count", "op": "in", "value": [2, 3]},
                        {"field": "revenue", "op": ">=", "value": 99.5},
                    ]
                }
            ],
            lambda count, total: count in (2, 3) or total >= 99.5,
        ),
        ([{"field": "average", "op": ">", "value": 11.5}], lambda n, total: total / n > 11.5),
    ],
)
async def test_conditions_on_figures_keep_groups(
    bills: Shop, havings: list[Row], kept: Callable[[int, int], bool]
) -> None:
    groups: dict[Any, list[int]] = defaultdict(list)
    for row in BILLS:
        groups[row["payer_id"]].append(row["total"])
    found = await ask(
        bills,
        "bill",
        group_by=["payer_id"],
        aggregates=[
            {"function": "count"},
            {"function": "sum", "field": "total", "as": "revenue"},
            {"function": "avg", "field": "total", "as": "average"},
        ],
        havings=havings,
        limit=5,
    )
    expected = {id for id, totals in groups.items() if kept(len(totals), sum(totals))}
    assert {one["payer_id"] for one in data(found)} <= expected
    assert (len(found.items), found.total) == (min(5, len(expected)), len(expected))


async def test_distinct_combinations_are_groups_with_the_number_of_their_records(
    bills: Shop,
) -> None:
    found = await ask(bills, "bill", select=["label", "note"], distinct=True, limit=1000)
    counts = Counter((row["label"], row["note"]) for row in BILLS)
    assert {
        (item.data["label"], item.data["note"]): item.query.rows
        for item in found.items
        if item.data and item.query
    } == counts
    assert found.dsl is not None
    assert found.dsl["groups"] == ["label", "note"]


# ------------------------------------------------------------------------------------- ties, a page


async def test_rows_that_equal_the_last_one_are_all_returned(bills: Shop) -> None:
    most = max(row["total"] for row in BILLS)
    best = [row["id"] for row in BILLS if row["total"] == most]
    assert len(best) > 1
    orders = [{"field": "total"}]
    found = await ask(bills, "bill", orders=orders, limit=1, ties=True)
    assert sorted(item.record_id for item in found.items) == best
    assert found.total == len(best)
    assert len((await ask(bills, "bill", orders=orders, limit=1)).items) == 1
    # The second place is shared as well: both are returned whole.
    more = await ask(bills, "bill", orders=orders, limit=len(best) + 1, ties=True)
    assert sorted(item.record_id for item in more.items) == [
        row["id"] for row in BILLS if row["total"] >= most - 1
    ]


async def test_groups_with_the_same_figure_are_all_returned(bills: Shop) -> None:
    counts = Counter(row["payer_id"] for row in BILLS)
    request = {"group_by": ["payer_id"], "aggregates": [{"function": "count"}], "ties": True}
    for limit in range(1, 8):
        found = await ask(bills, "bill", limit=limit, **request)
        bar = sorted(counts.values(), reverse=True)[limit - 1]
        assert {one["payer_id"] for one in data(found)} == {
            id for id, count in counts.items() if count >= bar
        }


async def test_ties_are_bounded_and_their_number_is_true(bills: Shop) -> None:
    found = await ask(bills, "bill", orders=[{"field": "currency"}], limit=2, ties=True)
    assert (len(found.items), found.total) == (2 + 100, len(BILLS))


async def test_pages_neither_overlap_nor_leave_gaps(bills: Shop) -> None:
    orders = [{"field": "total", "order": "asc"}, {"field": "note"}]
    whole = await ask(bills, "bill", orders=orders, limit=1000)
    pages = [
        await ask(bills, "bill", orders=orders, limit=30, offset=offset)
        for offset in range(0, 200, 30)
    ]
    assert [item.record_id for page in pages for item in page.items] == [
        item.record_id for item in whole.items
    ]
    assert {page.total for page in pages} == {len(BILLS)}


# ---------------------------------------------------------------------------------- related records

INNER: list[tuple[list[Row], Callable[[Row], bool]]] = [
    ([], lambda bill: True),
    ([{"field": "total", "op": ">", "value": 9}], lambda bill: bill["total"] > 9),
    (
        [{"field": "open", "op": "<", "value": 15}],
        lambda bill: (bill["open"] or 99) < 15 or bill["open"] == 0,
    ),
    ([{"field": "receiver.city", "value": "berlin"}], lambda bill: _city(bill) == "Berlin"),
    (
        [{"or": [{"field": "note", "value": "a"}, {"field": "paid_at", "op": "null"}]}],
        lambda bill: (bill["note"] or "").lower() == "a" or bill["paid_at"] is None,
    ),
]
COUNTS: dict[str, Callable[[int, int], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}


def _city(bill: Row) -> str:
    return str(PERSON[bill["receiver_id"]]["city"]) if bill["receiver_id"] else ""


def of(person: Row) -> list[Row]:
    return [bill for bill in BILLS if bill["payer_id"] == person["id"]]


@pytest.mark.parametrize("number", range(len(INNER)))
async def test_conditions_on_related_records_hold_for_some_none_all_or_a_number_of_them(
    bills: Shop, number: int
) -> None:
    wheres, holds = INNER[number]
    mine = {row["id"]: [holds(bill) for bill in of(row)] for row in PEOPLE}
    related = {"related": "bills", "wheres": wheres}
    assert await ids(bills, "person", related) == [id for id, held in mine.items() if any(held)]
    assert await ids(bills, "person", {**related, "none": True}) == [
        id for id, held in mine.items() if not any(held)
    ]
    if wheres:
        assert await ids(bills, "person", {**related, "all": True}) == [
            id for id, held in mine.items() if held and all(held)
        ]
    for op, compare in COUNTS.items():
        for bar in (0, 2):
            assert await ids(bills, "person", {**related, "count": {op: bar}}) == [
                id for id, held in mine.items() if compare(sum(held), bar)
            ], (op, bar)
    assert await ids(bills, "person", {**related, "count": {">=": 1, "lt": 4}}) == [
        id for id, held in mine.items() if 1 <= sum(held) < 4
    ]


async def test_two_relations_to_one_table_are_told_apart_by_name(bills: Shop) -> None:
    assert await ids(
        bills,
        "bill",
        {"field": "payer.city", "value": "Berlin"},
        {"field": "receiver.city", "value": "Zürich"},
    ) == [
        bill["id"]
        for bill in BILLS
        if bill["payer_id"]
        and PERSON[bill["payer_id"]]["city"] == "Berlin"
        and _city(bill) == "Zürich"
    ]
    paid_for, received = ({"related": name, "count": {">": 5}} for name in ("bills", "received"))
    counts = [Counter(bill[f"{name}_id"] for bill in BILLS) for name in ("payer", "receiver")]
    assert await ids(bills, "person", paid_for, received) == [
        id for id in PERSON if all(count[id] > 5 for count in counts)
    ]
    assert await ids(bills, "person", {"or": [paid_for, received]}) == [
        id for id in PERSON if any(count[id] > 5 for count in counts)
    ]


async def test_a_relation_to_one_record_takes_conditions_as_well(bills: Shop) -> None:
    berlin = [{"field": "city", "value": "Berlin"}]
    held = {
        bill["id"]: bool(bill["payer_id"]) and PERSON[bill["payer_id"]]["city"] == "Berlin"
        for bill in BILLS
    }
    assert await ids(bills, "bill", {"related": "payer", "wheres": berlin}) == [
        id for id, holds in held.items() if holds
    ]
    assert await ids(bills, "bill", {"related": "payer", "wheres": berlin, "none": True}) == [
        id for id, holds in held.items() if not holds
    ]
    # And behind it, to many: bills whose payer received more than five.
    counts = Counter(bill["receiver_id"] for bill in BILLS)
    for where in (
        {"related": "payer.received", "count": {">": 5}},
        {"related": "payer", "wheres": [{"related": "received", "count": {">": 5}}]},
    ):
        assert await ids(bills, "bill", where) == [
            bill["id"] for bill in BILLS if bill["payer_id"] and counts[bill["payer_id"]] > 5
        ]


async def test_the_absence_of_related_records_includes_records_without_the_key(
    bills: Shop,
) -> None:
    without = [bill["id"] for bill in BILLS if bill["payer_id"] is None]
    assert without
    for where in (
        {"field": "payer", "op": "null"},
        {"related": "payer", "none": True},
        {"related": "payer.bills", "count": {"=": 0}},
    ):
        assert await ids(bills, "bill", where) == without


# ---------------------------------------------------------------------- other values of the database

FIELDS: list[tuple[str, str, Callable[[Row], Any], Callable[[Row], Any]]] = [
    ("total", "open", lambda bill: bill["total"], lambda bill: bill["open"]),
    ("label", "note", lambda bill: bill["label"].lower(), lambda bill: _lower(bill["note"])),
    ("paid_at", "due", lambda bill: _day(bill), lambda bill: bill["due"]),
    ("due", "paid_at", lambda bill: bill["due"], lambda bill: _day(bill)),
    (
        "payer.credit",
        "receiver.credit",
        lambda bill: _credit(bill, "payer"),
        lambda bill: _credit(bill, "receiver"),
    ),
]


def _lower(text: str | None) -> str | None:
    return None if text is None else text.lower()


def _day(bill: Row) -> str | None:
    when = paid(bill)
    return None if when is None else f"{when:%Y-%m-%d}"


def _credit(bill: Row, who: str) -> int | None:
    id = bill[f"{who}_id"]
    return None if id is None else int(PERSON[id]["credit"])


@pytest.mark.parametrize("number", range(len(FIELDS)))
async def test_a_field_is_compared_with_another_one(bills: Shop, number: int) -> None:
    field, other, one, two = FIELDS[number]
    for op, compare in COUNTS.items():
        expected = []
        for bill in BILLS:
            pair = (one(bill), two(bill))
            both = None not in pair
            if compare(*pair) if both or op == "!=" else False:
                expected.append(bill["id"])
        where = {"field": field, "op": op, "other": {"field": other}}
        assert await ids(bills, "bill", where) == expected, op


async def test_a_field_is_compared_with_a_figure(bills: Shop) -> None:
    totals = [bill["total"] for bill in BILLS]
    mean = sum(totals) / len(totals)
    average = {"function": "avg", "field": "total"}
    assert await ids(bills, "bill", {"field": "total", "op": ">", "other": average}) == [
        bill["id"] for bill in BILLS if bill["total"] > mean
    ]
    labelled = [bill["total"] for bill in BILLS if bill["label"] == "B"]
    most = {"function": "max", "field": "total", "wheres": [{"field": "label", "value": "b"}]}
    assert await ids(bills, "bill", {"field": "total", "op": ">=", "other": most}) == [
        bill["id"] for bill in BILLS if bill["total"] >= max(labelled)
    ]
    first = {"function": "min", "field": "due"}
    assert await ids(bills, "bill", {"field": "due", "other": first}) == [
        bill["id"] for bill in BILLS if bill["due"] == min(bill["due"] for bill in BILLS)
    ]
    people = {"function": "count", "model": "person", "wheres": [{"field": "credit", "value": 1}]}
    number = sum(row["credit"] == 1 for row in PEOPLE)
    assert await ids(bills, "bill", {"field": "open", "op": "<", "other": people}) == [
        bill["id"] for bill in BILLS if bill["open"] is not None and bill["open"] < number
    ]
    # Inside conditions on related records, a figure is of the related model.
    assert await ids(
        bills,
        "person",
        {
            "related": "bills",
            "wheres": [{"field": "total", "op": ">", "other": average}],
            "count": {">": 3},
        },
    ) == [row["id"] for row in PEOPLE if sum(bill["total"] > mean for bill in of(row)) > 3]
    nothing = {"function": "max", "field": "total", "wheres": [{"field": "id", "value": 0}]}
    assert await ids(bills, "bill", {"field": "total", "op": ">", "other": nothing}) == []


# -------------------------------------------------------------------------------------- a property

NUMBERS = st.sampled_from(sorted(COUNTS))
BILL_WHERES = st.one_of(
    st.builds(
        lambda field, op, value: {"field": field, "op": op, "value": value},
        st.sampled_from(["total", "open", "payer.credit"]),
        NUMBERS,
        st.integers(0, 20),
    ),
    st.builds(
        lambda op, one, two: {"field": one, "op": op, "other": {"field": two}},
        NUMBERS,
        st.sampled_from(["total", "open"]),
        st.sampled_from(["receiver.credit", "open"]),
    ),
)


def _related(inner: st.SearchStrategy[Row]) -> st.SearchStrategy[Row]:
    quantifier = st.one_of(
        st.just({}),
        st.just({"none": True}),
        st.just({"all": True}),
        st.builds(lambda op, number: {"count": {op: number}}, NUMBERS, st.integers(0, 8)),
    )
    return st.builds(
        lambda name, wheres, more: {"related": name, "wheres": wheres, **more},
        st.sampled_from(["bills", "received"]),
        st.lists(inner, min_size=1, max_size=2),
        quantifier,
    )


PERSON_WHERES = st.recursive(
    _related(BILL_WHERES),
    lambda inner: st.builds(lambda listed: {"or": listed}, st.lists(inner, max_size=3)),
    max_leaves=4,
)


def meets(row: Row, where: Row) -> bool:
    """The oracle: whether a row meets a condition."""
    if "or" in where:
        return any(meets(row, one) for one in where["or"])
    if "related" in where:
        key = {"bills": "payer_id", "received": "receiver_id"}[where["related"]]
        held = [
            all(meets(bill, one) for one in where["wheres"])
            for bill in BILLS
            if bill[key] == row["id"]
        ]
        if "count" in where:
            return all(COUNTS[op](sum(held), number) for op, number in where["count"].items())
        if "none" in where:
            return not any(held)
        return (bool(held) and all(held)) if "all" in where else any(held)
    one = _read(row, where["field"])
    two = _read(row, where["other"]["field"]) if "other" in where else where["value"]
    if None in (one, two):
        return bool(where["op"] == "!=" and one != two)
    return COUNTS[where["op"]](one, two)


def _read(row: Row, name: str) -> Any:
    who, _, field = name.rpartition(".")
    if not who:
        return row[field]
    return None if row[f"{who}_id"] is None else PERSON[row[f"{who}_id"]][field]


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(wheres=st.lists(PERSON_WHERES, min_size=1, max_size=2))
async def test_any_condition_on_related_records_agrees_with_plain_python(
    bills: Shop, wheres: Sequence[Row]
) -> None:
    assert await ids(bills, "person", *wheres) == [
        row["id"] for row in PEOPLE if all(meets(row, where) for where in wheres)
    ], json.dumps(wheres)


async def test_a_query_that_cannot_be_computed_is_an_error_that_says_where(bills: Shop) -> None:
    with pytest.raises(SourceError, match="'name' is a field, not a relation"):
        await ids(bills, "person", {"related": "name"})


SENTENCES: list[tuple[str, Row]] = [
    (
        "sum of Total and number of Bill records for each Paid at (month), where number of Bill"
        " records > 6, the first 3, with all that are equal",
        {
            "groups": [{"field": "paid_at", "by": "month"}],
            "aggregates": [{"function": "sum", "field": "total"}, {"function": "count"}],
            "havings": [{"field": "count", "op": ">", "value": 6}],
            "limit": 3,
            "ties": True,
        },
    ),
    (
        "Bill without receiver (City = Berlin) where number of payer › bills (Total > 5) ≥ 2"
        " and all payer › received (Open is empty)",
        {
            "wheres": [
                {
                    "related": "receiver",
                    "wheres": [{"field": "city", "value": "Berlin"}],
                    "none": True,
                },
                {
                    "related": "payer.bills",
                    "wheres": [{"field": "total", "op": ">", "value": 5}],
                    "count": {">=": 2},
                },
                {
                    "related": "payer.received",
                    "wheres": [{"field": "open", "op": "null"}],
                    "all": True,
                },
            ]
        },
    ),
    (
        "Bill where Total > Open and Total < (average Total where Label = B) and Open ="
        " greatest Credit of Person",
        {
            "wheres": [
                {"field": "total", "op": ">", "other": {"field": "open"}},
                {
                    "field": "total",
                    "op": "<",
                    "other": {
                        "function": "avg",
                        "field": "total",
                        "wheres": [{"field": "label", "value": "B"}],
                    },
                },
                {
                    "field": "open",
                    "other": {"function": "max", "field": "credit", "model": "person"},
                },
            ]
        },
    ),
]


@pytest.mark.parametrize(("sentence", "query"), SENTENCES, ids=range(len(SENTENCES)))
def test_a_sentence_says_every_part_of_a_query(sentence: str, query: Row) -> None:
    teller = Teller(Schemas(SPECS), words_for("en", ""))
    assert teller.sentence(parse({"model": "bill", **query})) == sentence
    for language in ("de", "he"):
        assert Teller(Schemas(SPECS), words_for(language, "")).sentence(
            parse({"model": "bill", **query})
        )
