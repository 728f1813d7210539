"""What collections of garbage are spared."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def spared() -> Iterator[None]:
    """Leave out what there is by now. What an app is made of lives as long as its host: looking
    through it for garbage would stop all turns for 50 ms, again and again."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
