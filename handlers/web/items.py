"""Conversion of a provider's results to items: clean text, one item per page, best first. Pure."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Sequence
from datetime import datetime

from groundhook.core.types.search import Item
from groundhook.core.types.web_providers import WebHit, WebQuery
from groundhook.core.unseen import clean as without_unseen
from groundhook.handlers.web.dates import parse_date
from groundhook.handlers.web.urls import canonical, followable, within

_TAGS = re.compile(r"</?(?:b|i|em|strong|mark|br|p|span|a|u|sup|sub)(?:\s[^<>]*)?/?>", re.I)
_MARKUP = re.compile(r"[<&\\]")
# A code span, which is kept, or a sign that Markdown escapes.
_ESCAPED = re.compile(r"(?P<code>`[^`\n]{1,300}+`)|\\(?P<sign>[!-/:-@\[-`{-~])")


def items_of(hits: Sequence[WebHit], ask: WebQuery, now: datetime) -> tuple[Item, ...]:
    """Return at most `ask.limit` items, best first. Pages outside the requested sites or within
    excluded ones, without an http(s) address or without text are omitted; of two results for one
    page the first is kept. Relative dates count from `now`."""
    by_key: dict[str, Item] = {}
    for position, hit in enumerate(hits, start=1):
        url = followable(hit.url)
        if not url or not _is_wanted(url, ask) or (key := f"web:{canonical(url)}") in by_key:
            continue
        title, content = clean(hit.title).replace("\n", " "), clean(hit.content)
        if title or content:
            by_key[key] = Item(
                type="web",
                title=title or url,
                content=content,
                url=url,
                score=_score(hit, position),
                published=parse_date(clean(hit.published), now),
                status="listed",
                key=key,
            )
    return tuple(sorted(by_key.values(), key=lambda item: -item.score)[: ask.limit])


def _is_wanted(url: str, ask: WebQuery) -> bool:
    if any(within(url, site) for site in ask.exclude_sites):
        return False
    return not ask.sites or any(within(url, site) for site in ask.sites)


def position_score(position: int) -> float:
    """Return the score of a result without one by its position, counted from 1: 0.9 / (1 + 0.1 ·
    (position - 1)), which is 0.9, 0.82, … 0.47 for the tenth."""
    return 0.9 / (1 + 0.1 * (position - 1))


def clean(text: str) -> str:
    """Return text as a reader sees it: entities decoded, inline tags, invisible characters and the
    backslashes of Markdown removed, white space collapsed, line breaks kept."""
    if text.isascii() and text.isprintable() and not _MARKUP.search(text):
        # The fast path for most snippets; the rest takes ten times as long.
        return " ".join(text.split()) if "  " in text else text.strip()
    visible = _TAGS.sub("", html.unescape(text)).encode("utf-8", "ignore").decode("utf-8")
    visible = _ESCAPED.sub(lambda found: found["code"] or found["sign"], visible)
    lines = [
        " ".join(line.split()) for line in without_unseen(visible.replace("\r\n", "\n")).split("\n")
    ]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


def _score(hit: WebHit, position: int) -> float:
    if hit.score is None or not math.isfinite(hit.score):
        return position_score(position)
    return min(1.0, max(0.0, hit.score))
