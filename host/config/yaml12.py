"""YAML 1.2: text to data, with the position of each key and value, and data to text.

Plain data only: text keys, no custom tags, no merge keys (YAML 1.2 has none), no repeated keys.
Dates stay text as written, so that a file means the same in YAML and in JSON.
"""

from __future__ import annotations

import math
from contextlib import suppress
from io import StringIO
from typing import TYPE_CHECKING, Any

from groundhook.host.config.locations import Node, Parsed, Unreadable

if TYPE_CHECKING:
    from ruamel.yaml.error import MarkedYAMLError

_TAG = "tag:yaml.org,2002:"
_MOST_NODES = 200_000  # anchors can make a small text expand without end


def parse_yaml(text: str) -> Parsed:
    """Return the data of YAML 1.2. Raises Unreadable."""
    from ruamel.yaml import YAML  # 70 ms, and not every command reads YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError
    from ruamel.yaml.reader import ReaderError

    yaml = YAML(typ="safe", pure=True)
    try:
        top = yaml.compose(text)
        start = top.start_mark.index if top is not None else 0
        root = Node(start, start)
        data = None if top is None else _Reader(yaml.constructor).read(top, root)
    except ReaderError as exc:
        raise Unreadable("a character that YAML does not allow", exc.position) from None
    except MarkedYAMLError as exc:
        raise _make_error(exc, text) from None
    except YAMLError as exc:
        raise Unreadable(f"not YAML: {exc}", 0) from None
    except RecursionError:
        raise Unreadable("nested too deeply", 0) from None
    return Parsed(data, lambda: root, list)


def write_yaml(data: Any) -> str:
    """Return plain data as YAML 1.2, with keys in their order."""
    from ruamel.yaml import YAML

    yaml: Any = YAML(typ="safe", pure=True)
    yaml.default_flow_style = False
    yaml.sort_base_mapping_type_on_output = False
    written = StringIO()
    yaml.dump(data, written)
    return written.getvalue()


def _make_error(exc: MarkedYAMLError, text: str) -> Unreadable:
    """Return the error with its place. Of a quote that is open, or closed too early, that is where
    the quote begins: what the parser stumbles over may be pages below."""
    mark = exc.problem_mark or exc.context_mark
    at, problem = mark.index if mark else 0, exc.problem or exc.context or "not YAML"
    if "quoted scalar" in (exc.context or "") and exc.context_mark is not None:
        if "unknown escape" in problem:
            hint = "write \\\\ for a backslash, or '…' instead of \"…\""
            return Unreadable(f"{problem} in a quoted text", at, hint)
        if "end of stream" in problem or "document separator" in problem:
            begun = exc.context_mark.index
            return Unreadable("a quote that is never closed", begun, "close it where the text ends")
    quote = _find_quote_before(text, at)
    if quote is not None:
        end = quote.end_mark
        hint = "inside '…' write '' for '" if quote.style == "'" else 'inside "…" write \\" for "'
        message = f"the quote that begins here ends in line {end.line + 1}, column {end.column}"
        return Unreadable(f"{message}, and more text follows", quote.start_mark.index, hint)
    return Unreadable(problem, at, _hint(problem))


def _find_quote_before(text: str, at: int) -> Any:
    """Return the token of the quoted text that ends right before a place, in its line; None without
    one."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError
    from ruamel.yaml.tokens import ScalarToken

    last = None
    with suppress(YAMLError):  # the error that is being reported
        for token in YAML(typ="safe", pure=True).scan(text):
            if token.end_mark.index > at:
                break
            last = token
    if not isinstance(last, ScalarToken) or last.style not in ("'", '"'):
        return None
    between = text[last.end_mark.index : at]
    return last if not between.strip(" ") else None


def _hint(problem: str) -> str:
    if "'\\t'" in problem:
        return "YAML is indented with spaces"
    if "mapping values" in problem:
        return "a text with a colon and a blank needs quotes"
    if "another document" in problem:
        return "one document to a file"
    return ""


class _Reader:
    def __init__(self, constructor: Any) -> None:
        self._constructor = constructor
        self._left = _MOST_NODES

    def read(self, source: Any, node: Node) -> Any:
        """Return the data of a composed node and fill in the positions of `node`."""
        self._left -= 1
        if self._left < 0:
            raise Unreadable(
                "the document expands to more than 200,000 values",
                source.start_mark.index,
            )
        if source.tag == _TAG + "map":
            return self._mapping(source, node)
        if source.tag == _TAG + "seq":
            return [
                self.read(entry, self._child(node, n, entry, entry))
                for n, entry in enumerate(source.value)
            ]
        return self._scalar(source)

    def _mapping(self, source: Any, node: Node) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for key, value in source.value:
            at = key.start_mark.index
            if key.tag == _TAG + "merge":
                raise Unreadable("YAML 1.2 has no merge keys ('<<')", at, "write the keys out")
            if key.tag != _TAG + "str":
                raise Unreadable("a key must be text", at, "put it in quotes")
            if key.value in made:
                raise Unreadable(f"the key {key.value!r} occurs twice", at)
            made[key.value] = self.read(value, self._child(node, key.value, key, value))
        return made

    def _child(self, node: Node, step: str | int, key: Any, value: Any) -> Node:
        child = node.children[step] = Node(key.start_mark.index, value.start_mark.index)
        return child

    def _scalar(self, source: Any) -> Any:
        kind = source.tag.removeprefix(_TAG)
        if kind in ("str", "timestamp"):
            return source.value
        if kind not in ("null", "bool", "int", "float"):
            raise Unreadable(
                f"the tag {source.tag!r} is not supported",
                source.start_mark.index,
                "plain values only",
            )
        try:
            value = self._constructor.construct_object(source)
        except ValueError:
            raise Unreadable(f"{source.value!r} is not a {kind}", source.start_mark.index) from None
        if isinstance(value, float) and not math.isfinite(value):
            raise Unreadable(f"{source.value} is not a finite number", source.start_mark.index)
        return value
