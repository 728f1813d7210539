"""A copy of a collection's vectors, made to be optimised beside them."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from groundhook.core.errors import StorageError
from groundhook.handlers.kb.embedded.edge import Shard


@dataclass
class ShardCopy:
    """A copy of a collection's vectors, and what it holds."""

    source: Path
    path: Path
    generations: frozenset[int]
    fields: Mapping[str, str]
    shard: Shard | None = None

    def make(self) -> None:
        shutil.copytree(self.source, self.path)

    def discard(self) -> None:
        if self.shard is not None:
            with suppress(StorageError):
                self.shard.close()
        shutil.rmtree(self.path, ignore_errors=True)
