"""Write a page as Markdown: its text as a browser shows it, without what it hides."""

from __future__ import annotations

import re
import warnings
from collections.abc import Collection
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from groundhook.core.errors import IngestError
from groundhook.core.extras import extra
from groundhook.handlers.kb.reading.html_parts import name_icons, simplify

if TYPE_CHECKING:
    from bs4 import BeautifulSoup, Tag
    from markdownify import MarkdownConverter

NO_TEXT = (
    "script",
    "style",
    "noscript",
    "template",
    "svg",
    "head",
    "select",
    "datalist",
    "textarea",
)
BLOCKS = (
    "address",
    "aside",
    "details",
    "fieldset",
    "footer",
    "form",
    "header",
    "hgroup",
    "legend",
    "main",
    "summary",
)
# (elements, the parents that contain them): such an element ends where the next one of the set
# begins, since HTML makes its end tag optional.
ENDED_BY = (
    ({"li"}, {"ul", "ol", "menu"}),
    ({"dt", "dd"}, {"dl"}),
    ({"tr"}, {"table"}),
    ({"td", "th"}, {"tr", "table"}),
)
# Such an element ends a paragraph that is open, whose end tag is optional too, unless it is in one
# of the others.
ENDS_PARAGRAPH = frozenset(
    [
        *("address", "article", "aside", "blockquote", "center", "details", "dialog", "dir", "div"),
        *("dl", "fieldset", "figcaption", "figure", "footer", "form", "header", "hgroup", "hr"),
        *("h1", "h2", "h3", "h4", "h5", "h6", "main", "menu", "nav", "ol", "p", "pre", "section"),
        *("table", "ul"),
    ]
)
AROUND_PARAGRAPHS = frozenset(("button", "caption", "object", "table", "td", "template", "th"))
# The elements of a head: any other one ends it, since HTML makes its end tag optional.
IN_HEAD = frozenset(
    [
        *("base", "basefont", "bgsound", "head", "html", "link", "meta", "noframes", "noscript"),
        *("script", "style", "template", "title"),
    ]
)
TABLE_PARTS = ["caption", "thead", "tbody", "tfoot", "tr", "th", "td"]
# Characters that Markdown would read: asterisks that may begin or end emphasis, backslashes,
# beginnings of lines that are headings or lists, and lines that are only drawn.
_EMPHASIS = re.compile(r"(?<!\*)\*++(?=[^\s*])|(?<=[^\s*])\*++")
_BACKSLASH = re.compile(r"\\(?=[!-/:-@\[-`{-~])")
_LIKE_A_BLOCK = re.compile(r"(?m)^([ \t]*)(#{1,6}(?=[ \t]|$)|[*+>-](?=[ \t]|$))")
_LIKE_A_NUMBER = re.compile(r"(?m)^([ \t]*\d{3,9})([.)](?=[ \t]|$))")
_DRAWN = re.compile(r"(?m)^[ \t]*+(?:(?:-{2,}+|={2,}+)[ \t]*+$|(?:~{3,}+|`{3,}+))")


def parse_html(html: str | bytes) -> BeautifulSoup:
    """Parse HTML, in the encoding that it declares or else the likeliest one."""
    with extra("documents", "reading HTML files", IngestError):
        from bs4 import MarkupResemblesLocatorWarning, XMLParsedAsHTMLWarning

    # These warnings are for programmers, and would be printed to the user.
    for advice in (MarkupResemblesLocatorWarning, XMLParsedAsHTMLWarning):
        warnings.filterwarnings("ignore", category=advice)
    return _soup()(html, "html.parser")


def markdown_of(html: str | BeautifulSoup) -> str:
    """Return HTML as Markdown without scripts and hidden text, with the words of its pictures. A
    parsed document is modified."""
    soup = parse_html(html) if isinstance(html, str) else html
    remove_non_text(soup)
    remove_hidden(soup)
    simplify(soup)
    for tag in (*soup(list(BLOCKS)), *_layout(soup)):
        tag.name = "div"  # the converter puts blank lines around it
    text: str = _converter()(
        heading_style="ATX",
        escape_asterisks=False,
        escape_underscores=False,
        table_infer_header=True,
    ).convert_soup(soup)
    return re.sub(r"\n{3,}", "\n\n", text.replace("\u00ad", "")).strip() + "\n"


def _layout(soup: BeautifulSoup) -> list[Tag]:
    """Return the tables that contain tables, with their rows and cells. They arrange parts of a
    page, and Markdown cannot nest tables."""
    tables = [table for table in soup("table") if table.find("table")]
    return [
        *tables,
        *(
            tag
            for table in tables
            for tag in table(TABLE_PARTS)
            if tag.find_parent("table") is table
        ),
    ]


@cache
def _soup() -> type[BeautifulSoup]:
    from bs4 import BeautifulSoup

    class Soup(BeautifulSoup):
        """Ends list items, rows, cells and paragraphs where the next one begins, as browsers do."""

        def handle_starttag(self, name: str, *more: Any, **named: Any) -> Any:
            inside = self.currentTag.name if self.currentTag is not None else ""
            if inside == "head" and name not in IN_HEAD:
                self.handle_endtag("head")
            for names, around in ENDED_BY:
                if name in names:
                    found = next(
                        (
                            tag.name
                            for tag in reversed(self.tagStack)
                            if tag.name in names or tag.name in around
                        ),
                        "",
                    )
                    if found in names:
                        self.handle_endtag(found)
            if name in ENDS_PARAGRAPH:
                limits = AROUND_PARAGRAPHS | {"p"}
                tags = (tag.name for tag in reversed(self.tagStack) if tag.name in limits)
                if next(tags, "") == "p":
                    self.handle_endtag("p")
            return super().handle_starttag(name, *more, **named)

    return Soup


@cache
def _converter() -> type[MarkdownConverter]:
    with extra("documents", "reading HTML files", IngestError):
        # with its parser 40 ms, and few folders hold such files
        from markdownify import MarkdownConverter

    class Converter(MarkdownConverter):
        """Escapes `|` in table cells, asterisks that could be emphasis, and what would make a list
        or a heading of a paragraph. The library's type stubs lack its methods for single tags."""

        def escape(self, text: str, parent_tags: Any) -> str:
            escaped = _BACKSLASH.sub(r"\\\\", super().escape(text, parent_tags))  # type: ignore[misc]
            stars = _EMPHASIS.findall(escaped)
            return escaped if len(stars) < 2 else _EMPHASIS.sub(r"\\\g<0>", escaped)

        def convert_p(self, el: Any, text: str, parent_tags: Any) -> Any:
            plain = _LIKE_A_BLOCK.sub(r"\1\\\2", _DRAWN.sub("", text))
            plain = _LIKE_A_NUMBER.sub(r"\1\\\2", plain)
            return super().convert_p(el, plain, parent_tags)  # type: ignore[misc]

        def convert_td(self, el: Any, text: str, parent_tags: Any) -> Any:
            return super().convert_td(el, text.replace("|", "\\|"), parent_tags)  # type: ignore[misc]

        def convert_th(self, el: Any, text: str, parent_tags: Any) -> Any:
            return super().convert_th(el, text.replace("|", "\\|"), parent_tags)  # type: ignore[misc]

    return Converter


def remove_non_text(soup: BeautifulSoup) -> None:
    from bs4.element import CData, PreformattedString

    name_icons(soup)
    for tag in soup(list(NO_TEXT)):
        tag.decompose()
    for string in soup.find_all(
        string=lambda found: isinstance(found, PreformattedString) and not isinstance(found, CData)
    ):
        string.extract()  # comments, `<?xml …?>`


# values of `visibility`; any other one inherits
_VISIBLE = {"visible": True, "initial": True, "hidden": False, "collapse": False}


def remove_hidden(soup: BeautifulSoup) -> int:
    """Remove text that an element hides by its own attributes; return the number of words. Text
    under `aria-hidden` is kept, since sighted readers see it. Style sheets are not read."""
    from bs4 import Tag

    controlled = {
        id
        for control in soup.select("[aria-controls]")
        for id in str(control["aria-controls"]).split()
    }
    rendering = {id(soup): _Rendering()}  # id of a tag → how its content is rendered
    removed: list[Any] = []
    words = 0
    for node in soup.descendants:
        outer = rendering[id(node.parent)]
        if isinstance(node, Tag):
            inner = outer if _is_opened_later(node, controlled) else outer.of_child(node)
            rendering[id(node)] = inner
            if outer.displayed and not inner.displayed:
                removed.append(node)
        elif not (outer.displayed and outer.visible):
            words += len(str(node).split())
            if outer.displayed:  # else an element around it is removed
                removed.append(node)
    for node in removed:
        node.extract()
    return words


@dataclass(frozen=True)
class _Rendering:
    """Whether a browser shows the content of an element. Content that is not displayed stays so in
    every element inside; an element inside invisible content can be visible again."""

    displayed: bool = True
    visible: bool = True

    def of_child(self, tag: Tag) -> _Rendering:
        """Return the rendering inside an element of the content."""
        style = _style(tag)
        # A browser shows `until-found` when a search in the page finds it.
        hidden = tag.has_attr("hidden") and str(tag["hidden"]).lower() != "until-found"
        display = style.get("display", "none" if hidden else "")
        return _Rendering(
            displayed=self.displayed and display != "none",
            visible=_VISIBLE.get(style.get("visibility", ""), self.visible),
        )


def _is_opened_later(tag: Tag, controlled: Collection[str]) -> bool:
    """Return whether hidden content of an element is shown later: a script shows `html` and `body`
    after loading, and a reader opens tab panels and sections that a control refers to."""
    return (
        tag.name in ("html", "body") or tag.get("role") == "tabpanel" or tag.get("id") in controlled
    )


def _style(tag: Tag) -> dict[str, str]:
    """Return the declarations of an element's `style` attribute by property: the last one, or the
    last with `!important`."""
    declarations = (
        declaration.partition(":") for declaration in str(tag.get("style") or "").lower().split(";")
    )
    rising = sorted(declarations, key=lambda one: "!" in one[2])
    return {name.strip(): value.partition("!")[0].strip() for name, _, value in rising}
