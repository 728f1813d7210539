"""Opens a storage: PostgreSQL where the app's settings have a URL, else a SQLite file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from groundhook.host.core.app_settings import StoreSettings
from groundhook.host.storage.sql import Part, Storage
from groundhook.host.storage.sqlite import SqliteStorage


@contextmanager
def open_storage(
    settings: StoreSettings, file: Path, parts: Sequence[Part], *, noun: str
) -> Iterator[Storage]:
    """Open the place of the rows of `parts`; `noun` names it in errors. The first use makes it.
    Leaving closes every connection. Raises ConfigError for a URL that is none."""
    storage: Storage
    if settings.url:
        # Imported here because most apps keep their rows in files.
        from groundhook.host.storage.postgresql import PostgresqlStorage

        storage = PostgresqlStorage(settings.url, parts, noun=noun)
    else:
        storage = SqliteStorage(
            file,
            parts,
            noun=noun,
            busy_ms=settings.busy_ms,
            hint_busy="another process has locked it; store.busy_ms sets how long to wait",
        )
    try:
        yield storage
    finally:
        storage.close()
