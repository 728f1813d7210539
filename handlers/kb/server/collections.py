"""Finds, creates, removes and swaps the collections of a Qdrant server, by Groundhook's ids.

The settings and text statistics of a collection, which a search needs, are read once a minute.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import anyio
from qdrant_client import models

from groundhook.core.errors import StorageError
from groundhook.handlers.kb.server.collection_info import CollectionInfo
from groundhook.handlers.kb.server.connection import RequestRefused, ServerConnection
from groundhook.handlers.kb.server.filter import of_records
from groundhook.handlers.kb.server.layout import (
    FIELDS,
    SETTINGS_ID,
    alias,
    creation_arguments,
    indexes,
    parse_settings,
    settings_point,
)
from groundhook.handlers.kb.store.checks import detect_language, refuse_other_settings
from groundhook.handlers.kb.store.points import payload_path
from groundhook.handlers.kb.store.port import CollectionSettings, FullDocument

# Documents whose statistics are taken for the collection's; the first ones, since ids are hashes.
_SAMPLE = 1000
_INFO_S = 60.0  # how long the statistics are used
_LOOKS, _BETWEEN_S = 20, 0.25  # attempts to find a collection that another host is creating


class ServerCollections:
    def __init__(self, connection: ServerConnection, prefix: str) -> None:
        self._connection = connection
        self._prefix = prefix
        self._info: dict[str, CollectionInfo] = {}
        self._creating: defaultdict[str, anyio.Lock] = defaultdict(anyio.Lock)

    def forget(self, *collections: str) -> None:
        for collection in collections:
            self._info.pop(collection, None)

    async def look(self, collection: str) -> CollectionInfo | None:
        """Return what is known about a collection; None if it does not exist."""
        info = self._info.get(collection)
        now = asyncio.get_running_loop().time()
        if info is not None and info.expires > now:
            return info
        self.forget(collection)
        name = alias(self._prefix, collection)
        try:
            settings = parse_settings(await self.record(name, SETTINGS_ID))
            sample, more = await self._connection.read(
                lambda client: client.scroll(
                    name, of_records(None), _SAMPLE, with_payload=["chunks", "languages"]
                )
            )
        except RequestRefused as exc:
            if exc.status == 404:
                return None
            raise
        if settings is None:
            raise StorageError(
                f"collection {name!r} on {self._connection.url!r} was not made by Groundhook",
                hint="choose another qdrant.prefix",
            )
        info = CollectionInfo(name, settings, expires=now + _INFO_S)
        for record in sample:
            info.count(record.payload or {})
        # Documents beyond the sample are not read.
        info.divided = info.divided or more is not None
        return self._info.setdefault(collection, info)

    async def open_for_writing(
        self, collection: str, settings: CollectionSettings, *first: FullDocument
    ) -> CollectionInfo:
        """Return a collection to put documents into, and create it if necessary. Raises ConfigError
        if it was made with other settings."""
        async with self._creating[collection]:
            info = await self.look(collection) or await self._create(collection, settings, first)
        refuse_other_settings(collection, info.settings, settings)
        if info.settings.fields != settings.fields:
            await self._declare(info, settings.fields)
        return info

    async def discard(self, collection: str) -> None:
        physical = await self._physical_name(collection)
        self.forget(collection)
        if physical is not None:
            await self._connection.write(
                lambda client: client.update_collection_aliases([self._delete_alias(collection)])
            )
            await self._connection.write(lambda client: client.delete_collection(physical))

    async def swap(self, building: str, collection: str) -> None:
        """Replace a collection by another one."""
        new, old = await self._physical_name(building), await self._physical_name(collection)
        if new is None or old is None:
            raise StorageError(f"collection {collection!r} was removed at the same time")
        moves: list[Any] = [
            self._delete_alias(collection),
            self._delete_alias(building),
            self._create_alias(new, collection),
        ]
        await self._connection.write(lambda client: client.update_collection_aliases(moves))
        self.forget(building, collection)
        await self._connection.write(lambda client: client.delete_collection(old))

    async def record(self, name: str, id: str) -> Mapping[str, Any] | None:
        found = await self._connection.read(lambda client: client.retrieve(name, [id]))
        return found[0].payload if found else None

    async def _create(
        self, collection: str, settings: CollectionSettings, first: Sequence[FullDocument]
    ) -> CollectionInfo:
        settings = detect_language(settings, first)
        try:
            await self._make(collection, settings)
        except RequestRefused as exc:
            if exc.status != 409:  # another host is creating it
                raise
        for _ in range(_LOOKS):
            if (info := await self.look(collection)) is not None:
                return info
            await anyio.sleep(_BETWEEN_S)
        raise StorageError(
            f"collection {collection!r} could not be created on {self._connection.url!r}",
            hint="try again",
        )

    async def _make(self, collection: str, settings: CollectionSettings) -> None:
        """Create a collection. It gets its name when it is complete."""
        stem = alias(self._prefix, collection) + "@"
        existing = await self._connection.read(lambda client: client.get_collections())
        names = [each.name for each in existing.collections]
        numbers = [name.removeprefix(stem) for name in names if name.startswith(stem)]
        physical = (
            f"{stem}{1 + max((int(number) for number in numbers if number.isdigit()), default=0)}"
        )
        await self._connection.write(
            lambda client: client.create_collection(physical, **creation_arguments(settings))
        )
        for index in indexes(settings):
            await self._index(physical, *index)
        await self._connection.write(
            lambda client: client.upsert(physical, [settings_point(settings)])
        )
        await self._connection.write(
            lambda client: client.update_collection_aliases(
                [self._create_alias(physical, collection)]
            )
        )

    async def _declare(self, info: CollectionInfo, fields: Mapping[str, str]) -> None:
        """Update the indexes of payload fields to the declared ones."""
        before = info.settings.fields
        for field in [
            payload_path(name)
            for name, type in before.items()
            if fields.get(name) != type and type in FIELDS
        ]:
            await self._unindex(info.name, field)
        for name, type in fields.items():
            if before.get(name) != type and type in FIELDS:
                await self._index(info.name, payload_path(name), FIELDS[type])
        info.settings = replace(info.settings, fields=dict(fields))
        await self._connection.write(
            lambda client: client.upsert(info.name, [settings_point(info.settings)])
        )

    async def _unindex(self, name: str, field: str) -> None:
        await self._connection.write(lambda client: client.delete_payload_index(name, field))

    async def _index(self, name: str, field: str, schema: Any) -> None:
        await self._connection.write(
            lambda client: client.create_payload_index(name, field, schema)
        )

    async def _physical_name(self, collection: str) -> str | None:
        """Return the Qdrant collection that an alias refers to."""
        name = alias(self._prefix, collection)
        found = await self._connection.read(lambda client: client.get_aliases())
        return next((one.collection_name for one in found.aliases if one.alias_name == name), None)

    def _create_alias(self, physical: str, collection: str) -> models.CreateAliasOperation:
        name = alias(self._prefix, collection)
        return models.CreateAliasOperation(
            create_alias=models.CreateAlias(collection_name=physical, alias_name=name)
        )

    def _delete_alias(self, collection: str) -> models.DeleteAliasOperation:
        return models.DeleteAliasOperation(
            delete_alias=models.DeleteAlias(alias_name=alias(self._prefix, collection))
        )
