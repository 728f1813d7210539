"""Read HTML by converting it to Markdown."""

from __future__ import annotations

import re
import warnings
from codecs import lookup
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from groundhook.core.errors import IngestError
from groundhook.core.extras import extra
from groundhook.core.types.documents import Document
from groundhook.handlers.kb.reading.hidden import hidden_words
from groundhook.handlers.kb.reading.html_parts import name_icons, remove_link_bars, simplify
from groundhook.handlers.kb.reading.markdown import from_markdown
from groundhook.handlers.kb.reading.text import MARK, encoding_of, stray_nuls

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
MENUS = ("nav", "[role=navigation]")
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
TABLE_PARTS = ["caption", "thead", "tbody", "tfoot", "tr", "th", "td"]
# Declared encodings that browsers read as larger ones.
_AS_BROWSERS = {
    **dict.fromkeys(("iso-8859-1", "latin1", "latin-1", "l1", "ascii", "us-ascii"), "cp1252"),
    **dict.fromkeys(("iso-8859-9", "latin5", "latin-5"), "cp1254"),
    **dict.fromkeys(("iso-8859-11", "tis-620", "windows-874"), "cp874"),
    **dict.fromkeys(("gbk", "gb2312", "gb-2312-80", "x-gbk"), "gb18030"),
    **dict.fromkeys(("shift-jis", "sjis", "x-sjis", "ms932", "windows-31j"), "cp932"),
    **dict.fromkeys(("euc-kr", "ks-c-5601-1987", "korean"), "cp949"),
    "big5": "big5hkscs",
}
# Asterisks that may begin or end emphasis; beginnings of lines that are headings or lists.
_EMPHASIS = re.compile(r"(?<!\\)(?:\*+(?=[^\s*])|(?<=[^\s*])\*+)")
_LIKE_A_BLOCK = re.compile(r"(?m)^([ \t]*)(#{1,6}(?=[ \t]|$)|[*+>-](?=[ \t]|$))")
_LIKE_A_NUMBER = re.compile(r"(?m)^([ \t]*\d{3,9})([.)](?=[ \t]|$))")
_DECLARED = 4096  # bytes of a page that may declare its encoding
EDGES = (
    "header, footer, aside, [role=banner], [role=contentinfo], [role=complementary],"
    " .menu, .sidebar, .toc"
)


def html(data: bytes, name: str) -> Document:
    """Return the document. Raises IngestError for binary data."""
    notes: tuple[str, ...] = ()
    if b"\0" in data and encoding_of(data) == "utf-8":
        notes = stray_nuls(data.count(b"\0"), len(data), f"{name!r} was not added: it")
        data = data.replace(b"\0", b" ")
    soup = parse_html(_decoded(data))
    title = soup.title.get_text(" ", strip=True).lstrip(MARK) if soup.title else ""
    canonical = soup.find("link", rel="canonical")
    address = str(canonical.get("href") or "") if canonical else ""
    _remove_non_text(soup)
    hidden = _remove_hidden(soup)
    for menu in (*soup.select(", ".join(MENUS)), *_lists_of_links(soup)):
        menu.decompose()
    remove_link_bars(soup)
    document = from_markdown(markdown_of(soup).lstrip(MARK), name, front=False)
    url = address if address.startswith(("http://", "https://")) else ""
    return replace(
        document,
        title=title or document.title,
        url=url,
        notes=(*notes, *_encoding_note(soup), *hidden_words(hidden)),
    )


def _decoded(data: bytes) -> str | bytes:
    """Return a page that declares a legacy encoding as text, as browsers decode it."""
    if encoding_of(data) != "utf-8":
        return data
    with extra("documents", "reading HTML files", IngestError):
        from bs4.dammit import EncodingDetector

    declared = EncodingDetector.find_declared_encoding(data[:_DECLARED], is_html=True)
    label = (declared or "").lower().strip()
    try:
        codec = lookup(_AS_BROWSERS.get(label.replace("_", "-"), label)).name
    except LookupError:
        return data
    if not declared or codec.startswith("utf"):
        return data  # what is not UTF-8 is guessed
    return data.decode(codec, "replace")


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
    parsed document is
    modified."""
    soup = parse_html(html) if isinstance(html, str) else html
    _remove_non_text(soup)
    _remove_hidden(soup)
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
        """Ends list items, rows and cells where the next one begins, as browsers do."""

        def handle_starttag(self, name: str, *more: Any, **named: Any) -> Any:
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
            escaped: str = super().escape(text, parent_tags)  # type: ignore[misc]
            stars = _EMPHASIS.findall(escaped)
            return escaped if len(stars) < 2 else _EMPHASIS.sub(r"\\\g<0>", escaped)

        def convert_p(self, el: Any, text: str, parent_tags: Any) -> Any:
            plain = _LIKE_A_NUMBER.sub(r"\1\\\2", _LIKE_A_BLOCK.sub(r"\1\\\2", text))
            return super().convert_p(el, plain, parent_tags)  # type: ignore[misc]

        def convert_td(self, el: Any, text: str, parent_tags: Any) -> Any:
            return super().convert_td(el, text.replace("|", "\\|"), parent_tags)  # type: ignore[misc]

        def convert_th(self, el: Any, text: str, parent_tags: Any) -> Any:
            return super().convert_th(el, text.replace("|", "\\|"), parent_tags)  # type: ignore[misc]

    return Converter


def _remove_non_text(soup: BeautifulSoup) -> None:
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


def _remove_hidden(soup: BeautifulSoup) -> int:
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


def _lists_of_links(soup: BeautifulSoup) -> list[Tag]:
    """Return menus without a `nav` element: lists in the header, footer and sides of a page that
    contain only links."""
    edges = soup.select(EDGES)
    return [
        each
        for edge in edges
        for each in edge.find_all(["ul", "ol"])
        if _letters([each]) == _letters(each.find_all("a"))
    ]


def _letters(tags: Sequence[Tag]) -> str:
    return "".join("".join(tag.get_text().split()) for tag in tags)


def _encoding_note(soup: BeautifulSoup) -> tuple[str, ...]:
    """Return a note for a page that declares no encoding."""
    read_as = (soup.original_encoding or "utf-8").lower()
    if (
        soup.declared_html_encoding
        or soup.contains_replacement_characters
        or read_as.startswith(("utf", "ascii"))
    ):
        return ()
    return (
        (
            f"it declares no encoding and was read as {read_as}, which is a guess (save it as"
            ' UTF-8, or add <meta charset="…">)'
        ),
    )
