"""The laws of folding layers."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from groundhook.host.config.resolve import fold

keys = st.sampled_from(["a", "b", "c", "d"])
leaves = (
    st.none()
    | st.booleans()
    | st.integers(0, 3)
    | st.lists(st.integers(0, 2), max_size=2)
    | st.sampled_from(["", "x"])
)
anything = st.recursive(
    leaves, lambda inner: st.dictionaries(keys, inner, max_size=3), max_leaves=8
)
layers = st.lists(st.dictionaries(keys, anything, max_size=3), max_size=5)

# A validated layer: what is a section in one layer is a section in all.
shaped = st.lists(
    st.fixed_dictionaries(
        {},
        optional={"a": leaves, "s": st.fixed_dictionaries({}, optional={"x": leaves, "y": leaves})},
    ),
    max_size=6,
)


def numbered(layers: list[dict[str, Any]]) -> list[tuple[int, dict[str, Any]]]:
    return list(enumerate(layers))


def paths(value: Mapping[str, Any], path: tuple[str, ...] = ()) -> set[tuple[str, ...]]:
    found: set[tuple[str, ...]] = set()
    for key, inner in value.items():
        found |= paths(inner, (*path, key)) if isinstance(inner, Mapping) else {(*path, key)}
    return found


def at(value: Any, path: tuple[str, ...]) -> Any:
    for step in path:
        value = value[step]
    return value


@given(layers, st.data())
def test_an_empty_layer_changes_nothing(layers: list[dict[str, Any]], data: st.DataObject) -> None:
    named = [(str(n), layer) for n, layer in enumerate(layers)]
    where = data.draw(st.integers(0, len(named)))

    assert fold([*named[:where], ("empty", {}), *named[where:]]) == fold(named)


@given(layers)
def test_folding_changes_no_layer_and_shares_no_section_with_one(
    layers: list[dict[str, Any]],
) -> None:
    before = copy.deepcopy(layers)
    value, _ = fold(numbered(layers))
    for section in [value, *(inner for inner in value.values() if isinstance(inner, dict))]:
        section["mark"] = True

    assert layers == before


@given(layers, st.data())
def test_folding_in_two_steps_is_folding_in_one(
    layers: list[dict[str, Any]], data: st.DataObject
) -> None:
    middle = data.draw(st.integers(0, len(layers)))
    first, _ = fold(numbered(layers[:middle]))

    assert (
        fold([(0, first), *((1, layer) for layer in layers[middle:])])[0]
        == fold(numbered(layers))[0]
    )


@given(shaped, st.data())
def test_validated_layers_may_be_grouped_in_any_way(
    layers: list[dict[str, Any]], data: st.DataObject
) -> None:
    begin = data.draw(st.integers(0, len(layers)))
    end = data.draw(st.integers(begin, len(layers)))
    group, _ = fold(numbered(layers[begin:end]))

    assert fold(numbered([*layers[:begin], group, *layers[end:]]))[0] == fold(numbered(layers))[0]


@given(layers)
def test_every_leaf_comes_from_the_last_layer_that_says_it(layers: list[dict[str, Any]]) -> None:
    value, origins = fold(numbered(layers))

    assert set(origins) == paths(value)
    for path, number in origins.items():
        assert path in paths(layers[number])
        assert at(value, path) == at(layers[number], path)
        assert not any(path in paths(later) for later in layers[number + 1 :])


def test_false_zero_nothing_and_empty_lists_and_texts_override() -> None:
    value, origins = fold(
        [
            ("low", {"a": True, "b": 3, "c": [1], "d": "x", "e": 1}),
            ("high", {"a": False, "b": 0, "c": [], "d": "", "e": None}),
        ]
    )

    assert value == {"a": False, "b": 0, "c": [], "d": "", "e": None}
    assert set(origins.values()) == {"high"}
