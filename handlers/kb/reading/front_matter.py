"""Front matter: the YAML between two lines of dashes before a Markdown document. The door of this
package to the YAML library."""

from __future__ import annotations

import re
from typing import Any

from groundhook.host.core.errors import IngestError, Place
from groundhook.host.core.types.base import well_formed
from groundhook.host.core.types.documents import DocumentField

_FENCED = re.compile(r"\A---[ \t]*\n(.*?\n)?(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
_LONGEST = 64 * 1024  # characters


def front_matter(text: str, name: str) -> tuple[dict[str, DocumentField], int]:
    """What stands before a document, by name, and where the document begins: ({}, 0) when there is
    none. Raises IngestError, with the line, when it is not YAML."""
    fenced = _FENCED.match(text)
    if fenced is None or len(fenced[1] or "") > _LONGEST:
        return {}, 0
    data = _loaded(fenced[1] or "", name)
    if data is None:
        return {}, fenced.end()
    from ruamel.yaml.comments import CommentedMap  # loaded by now

    if not isinstance(data, CommentedMap):
        return {}, 0  # a line of dashes, some words, another line of dashes
    return {
        well_formed(str(key)): DocumentField(well_formed(value), data.lc.key(key)[0] + 2)
        for key, value in data.items()
    }, fenced.end()


def _loaded(yaml_text: str, name: str) -> Any:
    from ruamel.yaml import YAML  # 70 ms, and few files have front matter
    from ruamel.yaml.composer import Composer
    from ruamel.yaml.error import MarkedYAMLError, YAMLError
    from ruamel.yaml.events import AliasEvent

    class WithoutAliases(Composer):
        """A few hundred characters of aliases of aliases can stand for more values than there is
        memory for."""

        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.parser.check_event(AliasEvent):
                event = self.parser.peek_event()
                raise IngestError(
                    f"was not added: its front matter has an alias, *{event.anchor}, and aliases"
                    " are not read here",
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
    except (YAMLError, RecursionError, ValueError) as exc:
        mark = getattr(exc, "problem_mark", None) if isinstance(exc, MarkedYAMLError) else None
        said = getattr(exc, "problem", None) or "not YAML"
        raise IngestError(
            f"was not added: its front matter is no YAML: {said}",
            place=Place(name, mark.line + 2 if mark else 1),
            hint="the lines between the two lines of dashes; quote a value that has a colon in it",
        ) from exc
