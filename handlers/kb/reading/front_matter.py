"""Front matter: the YAML between two lines of dashes at the top of a Markdown document. The only
module of this package that imports the YAML library."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from typing import Any

from groundhook.core.errors import IngestError, Place
from groundhook.core.types.base import well_formed
from groundhook.core.types.documents import DocumentField
from groundhook.core.types.fields import LARGEST

_FENCED = re.compile(r"\A---[ \t]*\n(.*?\n)?(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
# A template as a value, which would be braces in braces.
_TEMPLATE = re.compile(r"^([ \t]*[\w.-]{1,60}+:[ \t]++)(\{[{%][^\n]*)$", re.MULTILINE)
_SCALAR = (str, int, float, date, type(None))  # keys that mean themselves
_LONGEST = 64 * 1024  # characters


def front_matter(text: str, name: str) -> tuple[dict[str, DocumentField], int]:
    """Return the fields of the front matter and the offset at which the document begins; ({}, 0)
    without front matter. Raises IngestError, with the line, if it is not YAML."""
    fenced = _FENCED.match(text)
    if fenced is None or len(fenced[1] or "") > _LONGEST:
        return {}, 0
    data = _load(_TEMPLATE.sub(_quoted, fenced[1] or ""), name)
    if data is None:
        return {}, fenced.end()
    from ruamel.yaml.comments import CommentedMap  # `_load` has imported the library

    if not isinstance(data, CommentedMap):
        return {}, 0  # text between two thematic breaks
    fields: dict[str, DocumentField] = {}
    for key, value in data.items():
        line = data.lc.key(key)[0] + 2
        if isinstance(value, Mapping) and any(not isinstance(each, _SCALAR) for each in value):
            raise IngestError(
                f"was not added: its front matter is not YAML: {key!s} has braces in braces",
                place=Place(name, line),
                hint="quote a template: '{{ … }}'",
            )
        fields[well_formed(str(key))] = DocumentField(_plain(value), line)
    return fields, fenced.end()


def _quoted(template: re.Match[str]) -> str:
    return f"{template[1]}'{template[2].replace(chr(39), chr(39) * 2)}'"


def _plain(value: Any) -> Any:
    """Return a value as one of JSON: dates as texts, which fields of any type read alike."""
    if isinstance(value, Mapping):
        return {well_formed(str(key)): _plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    if value is None or isinstance(value, (bool, float)):
        return value
    if isinstance(value, int) and abs(value) <= LARGEST:
        return int(value)
    return value.isoformat() if isinstance(value, date) else well_formed(str(value))


def _load(yaml_text: str, name: str) -> Any:
    from ruamel.yaml import YAML  # takes 70 ms, and few files have front matter
    from ruamel.yaml.composer import Composer
    from ruamel.yaml.error import MarkedYAMLError, YAMLError
    from ruamel.yaml.events import AliasEvent

    class WithoutAliases(Composer):
        """Refuses aliases: a few hundred characters of nested aliases can expand to more values
        than fit in memory."""

        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.parser.check_event(AliasEvent):
                event = self.parser.peek_event()
                raise IngestError(
                    f"was not added: its front matter has an alias, *{event.anchor}, and aliases"
                    " are not supported",
                    place=Place(name, event.start_mark.line + 2),
                    hint=(
                        "write the value out, or quote it if it is text that begins with an"
                        " asterisk"
                    ),
                )
            return super().compose_node(parent, index)

    yaml = YAML(typ="rt", pure=True)
    yaml.Composer = WithoutAliases
    try:
        return yaml.load(yaml_text)
    except (YAMLError, RecursionError, ValueError, TypeError) as exc:
        mark = getattr(exc, "problem_mark", None) if isinstance(exc, MarkedYAMLError) else None
        reason = getattr(exc, "problem", None) or "not YAML"
        raise IngestError(
            f"was not added: its front matter is not YAML: {reason}",
            place=Place(name, mark.line + 2 if mark else 1),
            hint="the lines between the two lines of dashes; quote a value that has a colon in it",
        ) from exc
