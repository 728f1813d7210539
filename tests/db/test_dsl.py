"""QueryDSL: the linter's problems, and values that never become the text of a statement."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st

from groundhook.core.errors import SourceError
from groundhook.core.types.model_spec import ModelSpec
from groundhook.core.types.query_language import Where
from groundhook.core.types.turn import Identity
from groundhook.handlers.db.model.schema import schema_of
from groundhook.handlers.db.model.tables import Tables
from groundhook.handlers.db.permission import permit_for
from groundhook.handlers.db.query import linter
from groundhook.handlers.db.query.dsl import EVERY_TEXT, PLAIN, QueryDSL, parse
from groundhook.handlers.db.query.statement import QueryCompiler
from tests.db.conftest import shop_models

PRODUCT = shop_models()["product"]
SCHEMA = schema_of(PRODUCT)
DIALECTS = {
    name: sa.make_url(f"{name}://").get_dialect()()
    for name in ("sqlite", "postgresql+psycopg", "mariadb+asyncmy")
}


def checked(field: str, op: str, value: Any = None) -> Where:
    query = QueryDSL(model="product", wheres=(Where(field=field, op=op, value=value),))
    return linter.checked(query, {"product": SCHEMA}).wheres[0]


@pytest.mark.parametrize(
    ("op", "known"),
    [
        ("==", "="),
        ("eq", "="),
        ("", "="),
        ("<>", "!="),
        ("gte", ">="),
        ("LT", "<"),
        ("NOT  IN", "not in"),
        ("not_in", "not in"),
        ("is null", "null"),
        ("notnull", "not null"),
    ],
)
def test_operators_have_one_spelling_after_the_linter(op: str, known: str) -> None:
    assert (
        checked("price", op, [1] if "in" in known else None if "null" in known else 1).op == known
    )


def test_column_is_an_alias_of_field() -> None:
    assert (
        parse({"model": "product", "wheres": [{"column": "brand", "value": "Apple"}]})
        .wheres[0]
        .field
        == "brand"
    )


def test_equal_to_null_matches_records_without_a_value() -> None:
    assert [checked("rating", op).op for op in ("=", "!=", "is", "is not")] == [
        "null",
        "not null",
        "null",
        "not null",
    ]


@pytest.mark.parametrize(
    ("field", "op", "value", "says"),
    [
        ("prise", "=", 1, "did you mean 'price'"),
        ("colour", "=", 1, "known: id, sku, name, brand"),
        ("price", "resembles", 1, "unknown operator 'resembles'"),
        ("price", "<", "cheap", "does not fit the field 'price'"),
        ("price", "<", None, "needs a value"),
        ("price", "<", float("nan"), "finite"),
        ("price", "like", "1", "cannot be used on 'price'"),
        ("featured", ">", True, "cannot be used on 'featured'"),
        ("featured", "=", "maybe", "neither true nor false"),
        ("released_at", ">", "soon", "does not fit"),
        ("price", "in", 5, "needs a list"),
        ("price", "between", [1], "two values"),
        ("brand", "in", ["x"] * 1001, "at most 1000"),
        ("stock", "=", 2**70, "too large"),
        ("brand", "=", {"a": 1}, "not text"),
        ("brand", "=", "a\0b", "NUL"),
        ("brand", "=", "\ud800", "does not fit"),
        ("price", "match", ["x"], "not a text field"),
        ("*", "match", [1], "needs words"),
    ],
)
def test_an_invalid_query_is_an_error_with_a_hint(
    field: str, op: str, value: Any, says: str
) -> None:
    with pytest.raises(SourceError) as refused:
        checked(field, op, value)
    assert says in str(refused.value)


@pytest.mark.parametrize("op", ["=", "!="])
def test_a_condition_without_a_value_is_an_error_and_not_a_search_for_null(op: str) -> None:
    # As a script's `undefined` arrives.
    query = parse({"model": "product", "wheres": [{"field": "rating", "op": op}]})
    with pytest.raises(SourceError, match="the condition on 'rating' has no value"):
        linter.checked(query, {"product": SCHEMA})


def test_parsing_a_query_names_the_unknown_key() -> None:
    with pytest.raises(SourceError, match=r"wheres\[0\].feild"):
        parse({"model": "product", "wheres": [{"feild": "brand", "field": "brand"}]})
    with pytest.raises(SourceError, match="limit"):
        parse({"model": "product", "limit": 0})


@pytest.mark.parametrize(("value", "kept"), [("ACTIVE", "active"), ("gone", "gone")])
def test_an_option_is_recognised_in_any_case(value: str, kept: str) -> None:
    assert checked("status", "=", value).value == kept


TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1)
SCALARS = st.one_of(
    TEXT, st.integers(), st.floats(), st.booleans(), st.none(), st.dates(), st.decimals()
)
VALUES = SCALARS | st.lists(TEXT, max_size=4)
WHERES = st.builds(
    lambda field, op, value: Where(field=field, op=op, value=value),
    st.sampled_from([*SCHEMA.fields, EVERY_TEXT]),
    st.sampled_from([*PLAIN, "match", "match any", "match none"]),
    VALUES,
)


@pytest.mark.parametrize("name", DIALECTS)
@given(
    wheres=st.lists(WHERES, max_size=4),
    permission=st.booleans(),
    identity=st.builds(Identity, user_id=TEXT, tenant_id=TEXT),
)
def test_no_value_ever_becomes_the_text_of_a_statement(
    name: str, wheres: list[Where], permission: bool, identity: Identity
) -> None:
    spec = PRODUCT.model_copy(
        update={"option": PRODUCT.option.model_copy(update={"permission": permission})}
    )
    schema = schema_of(spec)
    compiler = QueryCompiler(Tables({"product": spec}), name.partition("+")[0])
    shapes = []
    for values in (
        wheres,
        [where.model_copy(update={"value": _other(where.value)}) for where in wheres],
    ):
        try:
            query = linter.checked(
                QueryDSL(model="product", wheres=tuple(values)), {"product": schema}
            )
        except SourceError:
            return
        who = identity if values is wheres else Identity(user_id="someone", tenant_id="somewhere")
        shapes.append(
            str(_compiled(compiler.query(query, {"product": permit_for(spec, who)}, 10)[0], name))
        )
    # The same conditions with other values of the same kind are the same statement, letter for
    # letter.
    assert shapes[0] == shapes[1]


def _other(value: Any) -> Any:
    """A harmless value that takes the same way through the compiler."""
    if isinstance(value, str):
        return ("x" if value.isascii() else "é") + ("%" if "%" in value else "")
    if isinstance(value, list):
        return [_other(one) for one in value]
    return value


def _compiled(statement: sa.Select[Any], name: str) -> Any:
    return statement.compile(dialect=DIALECTS[name], compile_kwargs={"render_postcompile": True})


COUNT = {"function": "count"}
LINTED: list[tuple[dict[str, Any], str]] = [
    (
        {"wheres": [{"feild": "x", "field": "total"}]},
        "DSL000 wheres[0].feild: no such key (did you mean 'field'?)",
    ),
    ({"limit": 0}, "DSL000 limit: should be greater than or equal to 1"),
    (
        {"wheres": [{"or": [{"field": "item.colour"}]}]},
        "DSL001 wheres[0].or[0]: the model 'product' has no field 'colour'",
    ),
    ({"select": ["itm.name"]}, "DSL001 select[0]: the model 'order' has no field 'itm.name'"),
    ({"model": "ordr"}, "DSL002 model: no model 'ordr' (did you mean 'order'?)"),
    (
        {"wheres": [{"field": "total", "op": "~", "value": 1}]},
        "DSL003 wheres[0]: unknown operator '~'",
    ),
    ({"wheres": [{"field": "gift", "op": ">", "value": True}]}, "DSL004 wheres[0]"),
    ({"wheres": [{"field": "ordered_at", "op": ">", "value": "soon"}]}, "DSL005 wheres[0]"),
    (
        {"select": ["buyer"]},
        "DSL006 select[0]: 'buyer' is a relation, not a field (name one of its fields: id, name",
    ),
    (
        {"orders": [{"field": "buyer.orders.total"}]},
        "DSL006 orders[0].field: 'buyer.orders.total' leads to many records",
    ),
    (
        {"wheres": [{"field": "buyer.orders.item.price", "value": 1}]},
        "DSL006 wheres[0]: 'buyer.orders.item.price' follows 3",
    ),
    (
        {"aggregates": [{"function": "sum", "field": "city"}]},
        "DSL007 aggregates[0].field: 'sum' of 'city' cannot be computed",
    ),
    (
        {"aggregates": [{"function": "count"}], "select": ["city"]},
        "DSL007 select: 'city' is neither in 'groups' nor computed",
    ),
    (
        {"groups": ["city"], "orders": [{"field": "total"}]},
        "DSL008 orders[0].field: the result has no 'total' to order by (known: city)",
    ),
    ({"wheres": [{"field": "id", "op": "in", "value": [1] * 1001}]}, "DSL009 wheres[0]"),
    (
        {"groups": [{"field": "ordered_at", "by": "decade"}]},
        "DSL000 groups[0].by: should be 'year', 'quarter'",
    ),
    (
        {"groups": [{"field": "city", "by": "month"}]},
        "DSL007 groups[0].by: 'by' groups dates, and 'city' is text (name the field alone)",
    ),
    (
        {"groups": [{"field": "shipped_at", "by": "hour"}]},
        "DSL007 groups[0].by: 'shipped_at' is a date without time",
    ),
    (
        {"groups": ["city", "city"]},
        "DSL007 groups[1]: the result would have 'city' twice (leave it out",
    ),
    (
        {"groups": ["city"], "havings": [{"field": "count", "op": ">", "value": 1}]},
        "DSL007 havings: 'havings' need 'aggregates'",
    ),
    (
        {"aggregates": [COUNT], "havings": [{"field": "total", "op": ">", "value": 1}]},
        "DSL008 havings[0]: the result has no figure 'total' (known: count; conditions on fields",
    ),
    (
        {"aggregates": [COUNT], "havings": [{"field": "count", "op": ">", "value": "many"}]},
        "DSL005 havings[0]: the value 'many' does not fit the field 'count'",
    ),
    (
        {"aggregates": [COUNT], "havings": [{"or": [{"related": "item"}]}]},
        "DSL007 havings[0].or[0]: a condition on a figure compares it with a value",
    ),
    ({"ties": True}, "DSL008 ties: 'ties' needs 'orders'"),
    (
        {"ties": True, "orders": [{"field": "total"}], "offset": 5},
        "DSL007 offset: 'offset' cannot be used with 'ties'",
    ),
    (
        {"distinct": True},
        "DSL000 : 'distinct' needs the fields in 'select'",
    ),
    (
        {"wheres": [{"related": "buyr"}]},
        "DSL001 wheres[0]: the model 'order' has no field 'buyr' (did you mean 'buyer.…'?)",
    ),
    (
        {"wheres": [{"related": "buyer.name"}]},
        "DSL006 wheres[0].related: 'buyer.name' is a field, not a relation (relations of",
    ),
    (
        {"wheres": [{"related": "buyer.orders.item"}]},
        "DSL006 wheres[0]: 'buyer.orders.item' follows 3",
    ),
    (
        {"model": "customer", "wheres": [{"related": "orders.item"}]},
        "DSL006 wheres[0].related: 'orders.item' leads over several records to the relation 'item'",
    ),
    (
        {"wheres": [{"related": "buyer", "count": {">": 1}}]},
        "DSL007 wheres[0].count: 'buyer' leads to at most one record, which is not counted",
    ),
    (
        {"model": "customer", "wheres": [{"related": "orders", "count": {"~": 1}}]},
        "DSL003 wheres[0].count: unknown operator '~'",
    ),
    (
        {"model": "customer", "wheres": [{"related": "orders", "count": {">": -1}}]},
        "DSL005 wheres[0].count: -1 is not a number of records",
    ),
    (
        {"model": "customer", "wheres": [{"related": "orders", "count": {}}]},
        "DSL005 wheres[0].count: 'count' needs a comparison",
    ),
    (
        {"model": "customer", "wheres": [{"related": "orders", "all": True}]},
        "DSL005 wheres[0]: 'all' needs 'wheres'",
    ),
    (
        {"model": "customer", "wheres": [{"related": "orders", "none": True, "all": True}]},
        "DSL000 wheres[0]: takes one of 'count', 'none' and 'all'",
    ),
    (
        {"wheres": [{"field": "id", "none": True}]},
        "DSL000 wheres[0]: 'count', 'none' and 'all' need",
    ),
    (
        {"wheres": [{"related": "buyer", "wheres": [{"field": "total", "value": 1}]}]},
        "DSL001 wheres[0].wheres[0]: the model 'customer' has no field 'total'",
    ),
    ({"wheres": [{"related": "buyer"}] * 17}, "DSL009 wheres[16]: a query takes at most 16"),
    (
        {"wheres": [{"field": "*", "op": "match any", "value": [str(n) for n in range(201)]}]},
        "DSL009 wheres[0]: a query takes at most 200 words",
    ),
    (
        {"wheres": [{"field": "city", "op": "match", "value": list("abcde") * 10}] * 5},
        "DSL009 wheres[4]: a query takes at most 200 words",
    ),
    (
        {"wheres": [{"field": "total", "op": "like", "other": {"field": "id"}}]},
        "DSL004 wheres[0]: the operator 'like' cannot be used with 'other'",
    ),
    (
        {"wheres": [{"field": "total", "op": ">", "other": {"field": "city"}}]},
        "DSL005 wheres[0]: 'total' is a number, which cannot be compared with 'city', which is text",
    ),
    (
        {"wheres": [{"field": "total", "value": 1, "other": {"field": "id"}}]},
        "DSL000 wheres[0]: 'other' stands in place of the 'value' of a field",
    ),
    (
        {"wheres": [{"field": "buyer.orders.total", "other": {"field": "total"}}]},
        "DSL006 wheres[0]: 'buyer.orders.total' leads to many records, and 'other'",
    ),
    (
        {"wheres": [{"field": "total", "other": {"field": "totl"}}]},
        "DSL001 wheres[0]: the model 'order' has no field 'totl'",
    ),
    (
        {"wheres": [{"field": "total", "other": {"function": "avg", "field": "city"}}]},
        "DSL007 wheres[0].other.field: 'avg' of 'city' cannot be computed",
    ),
    (
        {"wheres": [{"field": "city", "other": {"function": "max", "field": "city"}}]},
        "DSL007 wheres[0]: 'max' of the text 'city' is not a figure",
    ),
    (
        {"wheres": [{"field": "total", "other": {"function": "count", "model": "ordr"}}]},
        "DSL002 wheres[0].other.model: no model 'ordr' (did you mean 'order'?)",
    ),
    (
        {
            "wheres": [
                {
                    "field": "total",
                    "other": {
                        "function": "avg",
                        "field": "total",
                        "wheres": [{"field": "cty", "value": 1}],
                    },
                }
            ]
        },
        "DSL001 wheres[0].other.wheres[0]: the model 'order' has no field 'cty'",
    ),
    (
        {"wheres": [{"field": "status", "value": "gone"}]},
        "DSL010 wheres[0].value: 'gone' is not among the options of 'status'",
    ),
]


@pytest.mark.parametrize(("query", "says"), LINTED)
def test_a_problem_has_a_code_a_path_and_a_hint(query: dict[str, Any], says: str) -> None:
    models = shop_models()
    orders = {"type": "hasMany", "model": "order", "key": "customer_id", "foreign": "id"}
    models["customer"] = ModelSpec.model_validate(
        {**models["customer"].model_dump(), "relations": {"orders": orders}}
    )
    (problem, *_) = linter.lint({"model": "order", **query}, models)
    assert str(problem).startswith(says)
    assert (problem.severity == "warning") == (problem.code == "DSL010")


def test_too_deeply_nested_conditions_are_an_error() -> None:
    deep: dict[str, Any] = {"field": "id", "value": 1}
    for _ in range(12):
        deep = {"or": [deep]}
    assert [
        problem.code for problem in linter.lint({"model": "order", "wheres": [deep]}, shop_models())
    ] == ["DSL009"]
    for _ in range(2000):
        deep = {"and": [deep]}
    assert {
        problem.code for problem in linter.lint({"model": "order", "wheres": [deep]}, shop_models())
    } == {"DSL000"}


NAMES = [
    "total",
    "city",
    "gift",
    "ordered_at",
    "item.brand",
    "item.price",
    "buyer.name",
    "buyer.orders.total",
    "buyer.orders",
]
CONDITIONS = st.recursive(
    st.builds(
        lambda field, op, value: {"field": field, "op": op, "value": value},
        st.sampled_from(NAMES),
        st.sampled_from(PLAIN),
        st.sampled_from(
            ["<marked>", "<marked>%", ["<marked>", "<marked>"], "2026-01-01", 5, [1, 2], True]
        ),
    ),
    lambda inner: st.dictionaries(
        st.sampled_from(["or", "and"]), st.lists(inner, max_size=3), min_size=1, max_size=1
    ),
)


@pytest.mark.parametrize("name", DIALECTS)
@given(wheres=st.lists(CONDITIONS, max_size=3), figures=st.booleans())
def test_no_value_becomes_text_behind_relations_and_under_figures_either(
    name: str, wheres: list[dict[str, Any]], figures: bool
) -> None:
    requested = (
        {"groups": ["item.brand"], "aggregates": [{"function": "sum", "field": "total"}]}
        if figures
        else {}
    )
    query = {"model": "order", "wheres": wheres, **requested}
    if any(problem.severity == "error" for problem in linter.lint(query, shop_models())):
        return
    tables = Tables(shop_models())
    compiler = QueryCompiler(tables, name.partition("+")[0])
    permits = dict.fromkeys(tables)
    clean = linter.checked(query, tables.schemas)
    for statement in (compiler.query(clean, permits, 10)[0], compiler.count(clean, permits, 10)):
        text = str(_compiled(statement, name))
        assert "marked" not in text
        assert "2026" not in text


def test_an_index_of_an_undeclared_column_is_an_error(spec: Callable[..., ModelSpec]) -> None:
    for columns, says in [
        ([{"name": "a", "type": "string"}], "needs a primary key"),
        ([{"name": "id", "type": "ID"}, {"name": "id", "type": "string"}], "declared twice"),
        ([{"name": "id", "type": "ID"}, {"name": "k", "type": "enum"}], "has no 'option'"),
    ]:
        with pytest.raises(ValueError, match=says):
            spec(columns=columns)
    with pytest.raises(ValueError, match="'nme', which is not declared"):
        spec(indexes=[{"name": "i", "columns": ["nme"]}])
