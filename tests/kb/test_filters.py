"""Filters on payload fields: what the engine finds is what a plain reading of the filter's JSON
says."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from groundhook.core.errors import UsageError
from groundhook.core.types.fields import FieldType, field_value
from groundhook.core.types.filters import dumped, fit_filter, loaded, parse_filter
from groundhook.handlers.kb.embedded.collection import Collection
from groundhook.handlers.kb.store.messages import pack_vector
from groundhook.handlers.kb.store.port import (
    CollectionSettings,
    FullDocument,
    Passage,
    VectorQuestion,
)

FIELDS: dict[str, FieldType] = {
    "tag": "keyword",
    "שם שדה": "keyword",
    "year": "integer",
    "price": "float",
    "done": "boolean",
    "at": "datetime",
}
MADE = CollectionSettings(
    provider="test", model="test", dimensions=2, language="english", tenanted=True, fields=FIELDS
)

# ---------------------------------------------------------------------------------- a plain reading


def fulfils(payload: Mapping[str, Any], raw: Mapping[str, Any]) -> bool:
    """Whether a payload fulfils a filter, read off its JSON."""
    return all(_entry(payload, key, value) for key, value in raw.items())


def _entry(payload: Mapping[str, Any], key: str, value: Any) -> bool:
    if key == "and":
        return all(fulfils(payload, each) for each in value)
    if key == "or":
        return any(fulfils(payload, each) for each in value)
    if key == "not":
        return not fulfils(payload, value)
    return _conditions(_values(payload, key), value)


def _values(payload: Mapping[str, Any], field: str) -> list[Any]:
    found = payload.get(field, [])
    return [_comparable(value) for value in (found if isinstance(found, list) else [found])]


def _conditions(values: list[Any], value: Any) -> bool:
    if value is None:
        return not values
    if not isinstance(value, Mapping):
        return any(
            own == _comparable(each)
            for own in values
            for each in (value if isinstance(value, list) else [value])
        )
    bounds = {
        key: _comparable(bound) for key, bound in value.items() if key in ("gt", "gte", "lt", "lte")
    }
    inside = not bounds or any(_inside(own, bounds) for own in values)
    return inside and all(
        _operator(values, key, operand) for key, operand in value.items() if key not in bounds
    )


def _operator(values: list[Any], operator: str, operand: Any) -> bool:
    if operator == "exists":
        return bool(values) is operand
    if operator == "not":
        return not _conditions(values, operand)
    return _conditions(values, operand)  # eq, in


def _inside(own: Any, bounds: Mapping[str, Any]) -> bool:
    return (
        ("gt" not in bounds or own > bounds["gt"])
        and ("gte" not in bounds or own >= bounds["gte"])
        and ("lt" not in bounds or own < bounds["lt"])
        and ("lte" not in bounds or own <= bounds["lte"])
    )


def _comparable(value: Any) -> Any:
    """A boolean is not a number here; a moment is one whatever its zone."""
    if isinstance(value, bool):
        return ("boolean", value)
    if isinstance(value, str) and value[:2] == "20":
        return datetime.fromisoformat(value if "T" in value else f"{value}T00:00:00Z").timestamp()
    return value


# -------------------------------------------------------------------------------- what there may be

VALUES: dict[str, list[Any]] = {
    "tag": ["a", "b", "A", 'q"uote', "é"],
    "שם שדה": ["א", "ב", "ג"],
    "year": [-2, -1, 0, 1, 2, 2**53],
    "price": [-1.5, 0.0, 0.1, 2.0, 1e9],
    "done": [True, False, True],
    "at": [
        "2024-01-01",
        "2024-01-01T00:00:00.5Z",
        "2024-06-01T12:00:00+02:00",
        "2024-06-01T10:00:00Z",
    ],
}


def conditions(field: str) -> st.SearchStrategy[Any]:
    value = st.sampled_from(VALUES[field])
    operators: dict[str, st.SearchStrategy[Any]] = {
        "eq": value,
        "in": st.lists(value, max_size=3),
        "exists": st.booleans(),
        "not": value | st.lists(value, max_size=2) | st.none(),
    }
    if FIELDS[field] in ("integer", "float", "datetime"):
        operators |= dict.fromkeys(("gt", "gte", "lt", "lte"), value)
    message = st.fixed_dictionaries({}, optional=operators).filter(bool)
    return value | st.lists(value, max_size=3) | st.none() | message


LEAVES = st.sampled_from(list(FIELDS)).flatmap(
    lambda field: st.fixed_dictionaries({field: conditions(field)})
)
FILTERS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: {"and": parts}),
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: {"or": parts}),
        inner.map(lambda one: {"not": one}),
        st.tuples(inner, inner).map(lambda pair: {**pair[0], **pair[1]}),
    ),
    max_leaves=6,
)


def held(payload: Mapping[str, Any]) -> dict[str, Any]:
    made = {name: field_value(value, FIELDS[name]) for name, value in payload.items()}
    return {name: value for name, value in made.items() if value is not None}


def drawn(chance: random.Random) -> dict[str, Any]:
    """A payload in which any field may be absent, empty, one value or several."""
    payload: dict[str, Any] = {}
    for name, values in VALUES.items():
        kind = chance.choice(("absent", "one", "several"))
        if kind != "absent":
            payload[name] = (
                chance.choice(values)
                if kind == "one"
                else chance.sample(values, chance.randrange(4))
            )
    return payload


@pytest.fixture(scope="module")
def stocked() -> Iterator[tuple[Collection, list[dict[str, Any]]]]:
    """Documents of two passages with random payloads, some of which are there once more for a
    tenant who must not be seen."""
    # The seed comes from pytest-randomly, which prints it.
    chance = random.Random(random.randrange(2**32))
    payloads = [drawn(chance) for _ in range(16)]
    # Each document is synced to the disk.
    memory = "/dev/shm" if Path("/dev/shm").is_dir() else None
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        collection: Collection | None = None
        for tenant, number in [
            *(("mine", n) for n in range(16)),
            *(("theirs", n) for n in range(8)),
        ]:
            passages = tuple(
                Passage(
                    passage=f"{n}",
                    content=f"pear {n}",
                    text="pear",
                    vector=pack_vector([1.0, number / 10 + n]),
                )
                for n in range(2)
            )
            document = FullDocument(
                document=f"{number}",
                title="",
                fingerprint="",
                passages=passages,
                tenant=tenant,
                fields=held(payloads[number]),
            )
            collection = collection or Collection.create(
                Path(folder) / "docs", "docs", MADE, document
            )
            list(collection.put(document))
        assert collection is not None
        yield collection, payloads
        collection.close()


@given(raw=FILTERS)
@settings(
    max_examples=300,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
def test_the_engine_finds_what_a_plain_reading_of_the_filter_says(
    stocked: tuple[Collection, list[dict[str, Any]]], raw: dict[str, Any]
) -> None:
    collection, payloads = stocked
    parsed = parse_filter(raw)
    assert parsed is not None
    wanted = fit_filter(parsed, FIELDS, "docs")
    assert loaded(dumped(wanted)) == wanted
    question = VectorQuestion(
        vector=pack_vector([1.0, 0.5]), text="pear", limit=100, tenant="mine", filter=wanted
    )
    found = sorted((hit.document, hit.ordinal) for hit in collection.search(question).hits)
    right = [str(number) for number, payload in enumerate(payloads) if fulfils(payload, raw)]
    assert found == sorted((document, ordinal) for document in right for ordinal in (0, 1))
    for name, pairs in collection.facets("mine", ["tag", "year", "done"], wanted, 100).items():
        own = [_set(held(payloads[int(document)]).get(name)) for document in right]
        values = {value for each in own for value in each}
        assert {(type(value), value): count for value, count in pairs} == {
            (type(value), value): sum(value in each for each in own) for value in values
        }


def _set(value: Any) -> set[Any]:
    return set() if value is None else set(value) if isinstance(value, list) else {value}


# -------------------------------------------------------------------------------- what is no filter


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ([], r"^filter must be an object of conditions, not a list"),
        ({"or": []}, r"^filter\.or must be a list of filters, and not an empty one"),
        ({"and": [{}]}, r"^filter\.and\[0\] needs a condition"),
        ({"not": {}}, r"^filter\.not needs a condition"),
        ({"year": {}}, r"^filter\.year needs a value or an operator"),
        ({"year": {"gtee": 1}}, r"^filter\.year: no operator 'gtee' \(did you mean 'gte'\?\)"),
        ({"year": {"in": 3}}, r"^filter\.year\.in must be a list of values, not 3"),
        ({"year": {"exists": "yes"}}, r"^filter\.year\.exists must be true or false"),
        ({"year": [[1]]}, r"^filter\.year\[0\] must be a value, not a list"),
        ({"year": list(range(1001))}, r"a filter may have 1000 conditions"),
    ],
)
def test_an_invalid_filter_is_reported_with_its_place(raw: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse_filter(raw)


@pytest.mark.parametrize("step", [lambda inner: {"not": inner}, lambda inner: {"and": [inner]}])
def test_a_filter_is_only_so_deep(step: Any) -> None:
    raw: Any = {"year": 1}
    for _ in range(2000):
        raw = step(raw)
    with pytest.raises(UsageError, match="16 levels deep"):
        parse_filter(raw)


def test_nested_operators_are_only_so_deep() -> None:
    raw: Any = 1
    for _ in range(500):
        raw = {"not": raw}
    with pytest.raises(UsageError, match="16 levels deep"):
        parse_filter({"year": raw})


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (
            {"yaer": 2024},
            r"collection 'docs' has no filterable field 'yaer' \(did you mean 'year'\?\)",
        ),
        ({"tenant": "theirs"}, r"no filterable field 'tenant'"),
        (
            {"year": "soon"},
            (
                r"^filter\.year: should be a whole number, not 'soon' \(the field is declared as"
                r" 'integer'\)"
            ),
        ),
        ({"year": True}, r"^filter\.year: should be a whole number"),
        ({"tag": {"gt": "a"}}, r"^filter\.tag: a keyword field has no order"),
        ({"at": {"lt": "tomorrow"}}, r"^filter\.at: should be a date or a time"),
        ({"done": "perhaps"}, r"^filter\.done: should be true or false"),
        ({"price": {"gte": float("inf")}}, r"^filter\.price: should be a number"),
        ({"tag": ""}, r"^filter\.tag: needs a value that is not empty"),
    ],
)
def test_a_filter_that_does_not_fit_the_declared_fields_is_refused(raw: Any, message: str) -> None:
    parsed = parse_filter(raw)
    assert parsed is not None
    with pytest.raises(UsageError, match=message):
        fit_filter(parsed, FIELDS, "docs")


def test_a_filter_without_conditions_is_none() -> None:
    assert parse_filter({}) is None


@pytest.mark.parametrize(
    ("value", "type", "made"),
    [
        ("2024", "integer", 2024),
        (" 7 ", "integer", 7),
        (3.0, "integer", 3),
        ("1.5", "float", 1.5),
        ("Yes", "boolean", True),
        (2020, "keyword", "2020"),
        ("e\u0301", "keyword", "é"),
        ("2024-05-01", "datetime", "2024-05-01T00:00:00Z"),
        ("2024-05-01T12:00:00+02:00", "datetime", "2024-05-01T10:00:00Z"),
        (["a", "", None], "keyword", ["a"]),
        ([], "keyword", None),
        ("", "integer", None),
    ],
)
def test_a_value_from_a_file_becomes_one_of_the_declared_type(
    value: Any, type: FieldType, made: Any
) -> None:
    assert field_value(value, type) == made


@pytest.mark.parametrize(
    ("value", "type"),
    [
        ("x", "integer"),
        (2**60, "integer"),
        ("nan", "float"),
        (True, "integer"),
        ({}, "keyword"),
        (3, "datetime"),
    ],
)
def test_a_value_of_another_type_is_refused(value: Any, type: FieldType) -> None:
    with pytest.raises(ValueError, match=r"should be .*, not "):
        field_value(value, type)
