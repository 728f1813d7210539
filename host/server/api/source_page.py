"""A document or a record as a page for browsers: HTML without scripts and images. Pure.

Passages are Markdown. HTML in them is shown as text, and addresses are http(s), relative or
`mailto:`; a relative one leads to another document of the collection. Nothing is shown that hides
or reorders text, as in every other exit: characters that no reader sees are omitted, and so is the
user part of an address (`https://velmora.example@elsewhere.example`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token

from groundhook.core.addresses import WEB, address
from groundhook.core.unseen import clean

_SCHEME = re.compile(r"([a-z][a-z0-9+.-]*):", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class ShownPassage:
    """A passage of a document. `marked`: it is the cited one. `page`: that of the file; 0: none."""

    text: str
    marked: bool = False
    page: int = 0


def document_page(title: str, passages: Sequence[ShownPassage], style: str) -> str:
    """Return the page of a document. A heading that only repeats the title is omitted. The first
    passage of each page of a file is the target of `#page=`, the first cited one of `#cited`.
    `style` is the address of a style sheet."""
    title = clean(title)
    firsts = {each.page: n for n, each in reversed(list(enumerate(passages)))}
    cited = next((n for n, each in enumerate(passages) if each.marked), -1)
    sections = []
    for at, each in enumerate(passages):
        is_first = each.page and firsts[each.page] == at
        anchor = f' id="page={each.page}"' if is_first else ""
        shown = _html(each, title if at == 0 else "")
        target = '<a id="cited"></a>' if at == cited else ""
        sections.append(f"<section{anchor}>{target}\n{shown}</section>")
    return _page(title, "\n".join(sections), style)


def page_of_values(title: str, passages: Sequence[Mapping[str, Any]], style: str) -> str:
    """Return the page of a document whose passages are the fields of `ShownPassage`, as another
    process gets them."""
    return document_page(title, [ShownPassage(**each) for each in passages], style)


def plain_page(title: str, passages: Sequence[ShownPassage], style: str) -> str:
    """Return the page of a document as it is written, for one that no parser ends with."""
    shown = (
        f"<mark>{escape(each.text)}</mark>" if each.marked else escape(each.text)
        for each in passages
    )
    return _page(title, "\n".join(f"<pre>{text}</pre>" for text in shown), style)


def record_page(title: str, fields: Mapping[str, str], style: str) -> str:
    """Return the page of a record."""
    rows = "\n".join(
        f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>"
        for name, value in fields.items()
    )
    return _page(title, f"<table>{rows}</table>", style)


def _page(title: str, body: str, style: str) -> str:
    head = (
        '<!doctype html><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f'<title>{escape(title)}</title><link rel="stylesheet" href="{style}">'
    )
    # The whole page: the parser reads `&#x202e;` as the character, too.
    return clean(f'{head}<main dir="auto"><h1>{escape(title)}</h1>\n{body}</main>')


class _Parser(MarkdownIt):
    def normalizeLink(self, url: str) -> str:  # noqa: N802 (overrides)
        """Return an address as it may be linked to; "" if it may not."""
        url = super().normalizeLink(clean(url)).strip()
        scheme = _SCHEME.match(url)
        if scheme is not None and scheme[1].lower() in WEB:
            return address(scheme[1].lower() + url[scheme.end(1) :])
        if url.startswith("//"):  # of the scheme of the page, whichever that is
            return address(f"https:{url}").removeprefix("https:")
        return url if scheme is None or scheme[1].lower() == "mailto" else ""

    def validateLink(self, url: str) -> bool:  # noqa: N802 (overrides)
        """Return whether there is an address after `normalizeLink`."""
        return bool(url)


@cache
def _parser() -> MarkdownIt:
    # Line breaks stay, since plain text is shown as well.
    parser = _Parser("commonmark", {"html": False, "breaks": True})
    return parser.enable("table").disable("image")


def _html(passage: ShownPassage, title: str) -> str:
    tokens = _parser().parse(clean(passage.text))
    if len(tokens) > 1 and tokens[0].tag == "h1" and tokens[1].content.strip() == title.strip():
        del tokens[:3]
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(6, int(token.tag[1]) + 1)}"  # below the title of the page
        # A mark around paragraphs and tables would show no background.
        if passage.marked and token.type == "inline":
            token.children = [_raw("<mark>"), *(token.children or ()), _raw("</mark>")]
        elif passage.marked and token.type in ("fence", "code_block"):
            token.type, token.content = (
                "html_block",
                (f"<pre><code><mark>{escape(token.content)}</mark></code></pre>\n"),
            )
    return str(_parser().renderer.render(tokens, _parser().options, {}))


def _raw(html: str) -> Token:
    return Token("html_inline", "", 0, content=html)
