"""Remove what only moves a reader about: menus, bars of links, tables of contents."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from groundhook.handlers.kb.reading.html_parts import HEADINGS

if TYPE_CHECKING:
    from bs4 import BeautifulSoup, Tag

_MENUS = "nav, [role=navigation]"
_EDGES = (
    "header, footer, aside, [role=banner], [role=contentinfo], [role=complementary],"
    " .menu, [class*=sidebar], [id*=sidebar], [class*=sidenav]"
)
_BARS = (
    *("breadcrumb", "breadcrumbs", "navfooter", "navheader"),
    *("pagination", "skip-link", "skip-nav", "skiplink"),
)
_CONTENTS = "#contents, #toc, .contents, .localtoc, .table-of-contents, .toc, .toctree-wrapper"
_STEPS = "a[accesskey], a[rel=next], a[rel=prev], a[rel=up]"  # to the pages before and after
_MOST_BAR = 300  # letters of a table with such steps
_LEAST_TEXT = 20  # letters beside a table of contents, without headings
# A menu marks the page that it is on.
_MARKED = ".active, .current, [aria-current]"
_SKIP = re.compile(
    r"(skip|jump) (to|over)\b|zum (haupt)?inhalt\b|aller au contenu\b", re.IGNORECASE
)
_PERMALINKS = frozenset(("", "#", "¶", "§", "🔗", "\uf0c1"))


def remove_links(soup: BeautifulSoup) -> None:
    """Remove menus, bars of links, tables of contents, links that skip them, and links of a heading
    to a place in the page."""
    for menu in (*soup.select(_MENUS), *soup.find_all(class_=_BARS), *_tables_of_steps(soup)):
        menu.decompose()
    for menu in (*_lists_of_links(soup), *_contents(soup)):
        menu.decompose()
    for link in soup.select('a[href^="#"]'):
        text = link.get_text().strip()
        if _SKIP.match(text) or (text in _PERMALINKS and not link.find("img")):
            link.decompose()
        elif link.parent is not None and link.parent.name in HEADINGS:
            link.unwrap()


def _tables_of_steps(soup: BeautifulSoup) -> list[Tag]:
    """Return tables that hold the links to the pages before and after."""
    tables = {
        id(table): table
        for link in soup.select(_STEPS)
        for table in link.find_parents("table", limit=1)
    }
    return [table for table in tables.values() if len(_letters([table])) < _MOST_BAR]


def _lists_of_links(soup: BeautifulSoup) -> list[Tag]:
    """Return menus without a `nav` element: lists that contain only links, in the header, footer
    and sides of a page, or with the page itself marked."""
    lists = {id(each): each for edge in soup.select(_EDGES) for each in edge.find_all(["ul", "ol"])}
    for marked in soup.select(_MARKED):
        lists |= {id(each): each for each in marked.find_parents(["ul", "ol"], limit=1)}
    return [each for each in lists.values() if _letters([each]) == _letters(each.find_all("a"))]


def _contents(soup: BeautifulSoup) -> list[Tag]:
    """Return the tables of contents of a page that has other text too."""
    found = [
        each
        for each in soup.select(_CONTENTS)
        if 0.6 * len(_letters([each])) <= len(_letters(each.find_all("a")))
    ]
    inside = {id(each) for one in found for each in one.select(_CONTENTS)}
    outer = [each for each in found if id(each) not in inside]
    rest = len(_letters([soup])) - len(_letters(outer)) - len(_letters(soup(HEADINGS)))
    return outer if rest > _LEAST_TEXT else []


def _letters(tags: Sequence[Tag]) -> str:
    return "".join("".join(tag.get_text().split()) for tag in tags)
