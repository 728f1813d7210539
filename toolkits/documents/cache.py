"""A cache of pages of summaries, each for one identity."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable

from groundhook.toolkits.documents.summaries import SummaryPage

MOST = 500  # pages of all identities together; the oldest goes first


class PageCache:
    """Keeps pages for `seconds`; nothing with 0. A key includes the whole identity, so that no
    identity gets the page of another."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._clock = clock
        self._pages: OrderedDict[Hashable, tuple[float, SummaryPage]] = OrderedDict()

    def get(self, key: Hashable) -> SummaryPage | None:
        """Return the page of a key, if it was kept less than `seconds` ago."""
        kept, page = self._pages.get(key, (0.0, None))
        return page if page is not None and self._clock() - kept < self._seconds else None

    def put(self, key: Hashable, page: SummaryPage) -> None:
        """Keep a page."""
        if self._seconds <= 0:
            return
        self._pages.pop(key, None)
        self._pages[key] = (self._clock(), page)
        while len(self._pages) > MOST:
            self._pages.popitem(last=False)
