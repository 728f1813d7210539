"""Opens a storage: PostgreSQL if the app's settings have a URL, else a SQLite file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from groundhook.core.app_settings import StoreSettings
from groundhook.host.chats.storage.sql import Storage, TableScripts
from groundhook.host.chats.storage.sqlite import SqliteStorage


@contextmanager
def open_storage(
    settings: StoreSettings,
    file: Path,
    parts: Sequence[TableScripts],
    *,
    noun: str,
    busy: tuple[str, int] | None = None,
) -> Iterator[Storage]:
    """Yield the storage of the rows of `parts`; `noun` names it in errors. The first use creates
    it. `busy` is another setting for the wait for a locked file, and its value. Leaving closes
    every connection. Raises ConfigError for a URL that is not valid."""
    setting, busy_ms = busy or ("store.busy_ms", settings.busy_ms)
    hint_busy = f"another process has locked it; {setting} sets how long to wait"
    storage: Storage
    if settings.url:
        # Imported here because most apps keep their rows in files.
        from groundhook.host.chats.storage.postgresql import PostgresqlStorage

        storage = PostgresqlStorage(
            settings.url, parts, noun=noun, busy_ms=busy_ms, hint_busy=hint_busy
        )
    else:
        storage = SqliteStorage(file, parts, noun=noun, busy_ms=busy_ms, hint_busy=hint_busy)
    try:
        yield storage
    finally:
        storage.close()
