"""Read reStructuredText, also with the roles and directives of Sphinx, by way of HTML."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from groundhook.core.errors import IngestError
from groundhook.core.extras import extra
from groundhook.core.types.documents import Document
from groundhook.handlers.kb.reading.html_markdown import markdown_of, parse_html
from groundhook.handlers.kb.reading.markdown import from_markdown
from groundhook.handlers.kb.reading.text import decode

_ROLE = re.compile(r"(?<![\w.+:-]):([A-Za-z][\w.+-]*+(?>(?::[\w.+-]++)*)):`")
_DIRECTIVE = re.compile(r"^[ \t]*+\.\.[ \t]++([A-Za-z][\w.+:-]*)::(?:[ \t]|$)", re.MULTILINE)
_PICTURE = re.compile(r"^[ \t]*+\.\.[ \t]++\|([^|\n]{1,200})\|[ \t]++image::", re.MULTILINE)
_TARGET = re.compile(r"(.*)<[^<>]*>\Z", re.DOTALL)
_PROSE = frozenset(("abbr", "doc", "dfn", "guilabel", "menuselection", "numref", "ref", "term"))
_NO_TEXT = {
    *("contents", "currentmodule", "default-domain", "default-role", "graphviz", "highlight"),
    *("include", "index", "literalinclude", "meta", "module", "raw", "sectionauthor"),
    *("tabularcolumns", "toctree"),
}
_CODE = {"code", "code-block", "math", "sourcecode"}  # which have more options in Sphinx
_SAID = {
    "versionadded": "Added in version",
    "versionchanged": "Changed in version",
    "deprecated": "Deprecated since version",
    "versionremoved": "Removed in version",
}


def rst(data: bytes, name: str) -> Document:
    """Return the document. Raises IngestError."""
    text, notes = decode(data, name)
    with extra("documents", "reading reStructuredText", IngestError):
        from docutils.core import publish_parts

    _know(text)
    settings = {
        "_disable_config": True,
        "embed_stylesheet": False,
        "file_insertion_enabled": False,
        "halt_level": 5,
        "initial_header_level": 2,
        "line_length_limit": len(text) + 1,
        "math_output": "MathML",
        "raw_enabled": False,
        "report_level": 5,
        "stylesheet_path": "",
        "syntax_highlight": "none",
    }
    body = publish_parts(text, writer="html5", settings_overrides=settings)["html_body"]
    soup = parse_html(body)
    for link in soup.select('a[href^="#"]'):
        link.unwrap()
    pictures = frozenset(_PICTURE.findall(text))
    for image in soup.select("img[alt]"):
        if image["alt"] in pictures:  # docutils gives a picture without words the name of its mark
            del image["alt"]
    document = from_markdown(markdown_of(soup), name, front=False)
    return replace(document, notes=(*notes, *document.notes))


def _know(text: str) -> None:
    """Register the roles and directives of a text that only Sphinx knows, so that their text is
    read."""
    from docutils.parsers.rst import directives, roles
    from docutils.parsers.rst.languages import en

    for name in {found.lower() for found in _ROLE.findall(text)} - en.roles.keys():
        roles.register_local_role(name, _read_role)
    for name in {found.lower() for found in _DIRECTIVE.findall(text)}:
        if name in _NO_TEXT | _CODE or name not in en.directives:
            directives.register_directive(name, _directive())


def _read_role(
    name: str, rawtext: str, text: str, lineno: int, inliner: Any, *_: Any
) -> tuple[Sequence[Any], Sequence[Any]]:
    """Return a role's text: its title, or what it refers to."""
    from docutils import nodes

    if titled := _TARGET.match(text):
        text = titled[1].rstrip()
    elif text.startswith("~"):
        text = text.rpartition(".")[2].lstrip("~")
    kind = nodes.inline if name.rpartition(":")[2] in _PROSE else nodes.literal
    return [kind(rawtext, text.lstrip("!"))], []


@cache
def _directive() -> Any:
    from docutils import nodes
    from docutils.parsers.rst import Directive

    class Options(dict[str, Any]):
        """Takes options of any name."""

        def __missing__(self, name: str) -> Any:
            return str

        def __bool__(self) -> bool:
            return True

    class Shown(Directive):  # type: ignore[misc]  # docutils has no types
        """The argument of a directive and its content, as text."""

        optional_arguments = 1
        final_argument_whitespace = True
        has_content = True
        option_spec = Options()

        def run(self) -> list[Any]:
            if self.name.lower() in _NO_TEXT:
                return []
            if self.name.lower() in _CODE:
                code = "\n".join([*self.arguments[self.name != "math" :], *self.content])
                kind = nodes.math_block if self.name == "math" else nodes.literal_block
                return [kind(code, code)]
            said = _SAID.get(self.name.lower(), "")
            line = f"{said} {' '.join(self.arguments)}".strip()
            parsed, messages = self.state.inline_text(line, self.lineno)
            shown = nodes.container()
            if line:
                shown += nodes.paragraph(line, "", *parsed)
            self.state.nested_parse(self.content, self.content_offset, shown)
            return [shown, *messages]

    return Shown
