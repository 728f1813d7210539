"""Log lines: verbs are filled, the rest follows, nothing is lost and nothing fails."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundhook.hooks.printf import printf

PLAIN = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ([], ""),
        (["plain"], "plain"),
        (["100%"], "100%"),
        (["%s and %s", "a"], "a and %s"),
        (["%d items", 3.0], "3 items"),
        (["%d", 3.7], "3"),
        (["%i", "12"], "12"),
        (["%d", "many"], "many"),
        (["%.2f", 1.005], "1.00"),
        (["%5.1f|", 2.25], "2.2|"),
        (["%f", 0.5], "0.5"),
        (["%v %+v %j %o", True, None, "x", 1], "true null x 1"),
        (["%q", 'say "hi"'], '"say \\"hi\\""'),
        (["%x", 255], "ff"),
        (["%c styled", "color: red"], " styled"),
        (["50%% of %s", "x"], "50% of x"),
        (["50%%"], "50%"),
        (["a", "b", 1, False], "a b 1 false"),
        ([1, "b"], "1 b"),
        (["%z", "a"], "%z a"),
    ],
)
def test_lines(arguments: list[Any], line: str) -> None:
    assert printf(arguments) == line


@given(st.lists(PLAIN))
def test_any_arguments_make_a_line(arguments: list[Any]) -> None:
    assert isinstance(printf(arguments), str)


@given(st.text().filter(lambda text: "%" not in text), st.lists(st.text()))
def test_without_a_verb_every_argument_is_in_the_line(first: str, rest: list[str]) -> None:
    assert printf([first, *rest]) == " ".join([first, *rest])
