"""The files that the user's messages bring, as sources of a turn.

A file is read by the readers of documents. As long as they are short together, the newest ones
reach the model whole; of the others it gets the passages that fit the question. The part of the
message becomes a note, since the text is among the sources, where it can be cited. A file that
cannot be read stays as it is: the model may read it itself, and else its connector warns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import anyio

from groundhook.core.app_settings import AttachmentSettings
from groundhook.core.errors import NotPermitted, SourceError, SourceTimeout, UsageError
from groundhook.core.ports import SourceResult, Warn
from groundhook.core.settings import HttpSettings
from groundhook.core.types.attached import (
    COLLECTION,
    AttachedPart,
    AttachedPassage,
    AttachedReader,
    AttachedText,
    attached_part,
    attached_picture,
)
from groundhook.core.types.search import Extent, Item
from groundhook.core.types.turn import Message
from groundhook.host.web_client.clients import WebClients

MOST_FILES = 20  # of a conversation that a turn reads, the newest ones
_MOST_NOTES = 3  # warnings of one file
_BEGINNING = 3  # passages of a searched file where none is near to the question
_NEAR = 0.75  # score of a passage that surely is


@dataclass
class TurnFiles:
    """The files of a conversation, those of the last message first."""

    parts: Sequence[AttachedPart]
    problems: Sequence[UsageError]
    _newest: int  # how many of them the last message has
    _reader: Callable[[], AttachedReader]
    _clients: WebClients
    _settings: AttachmentSettings
    _texts: dict[str, AttachedText] = field(default_factory=dict)
    _notes: dict[str, str] = field(default_factory=dict)
    _read: int = 0
    _all_read: anyio.Event = field(default_factory=anyio.Event)

    @staticmethod
    def of(
        messages: Sequence[Message],
        reader: Callable[[], AttachedReader],
        clients: WebClients,
        settings: AttachmentSettings,
    ) -> TurnFiles:
        """Return the files of a conversation, each once."""
        found: dict[str, AttachedPart] = {}
        problems: list[UsageError] = []
        newest: int | None = None
        for message in reversed(messages):
            if message.role != "user":
                continue
            for part in message.content if isinstance(message.content, list) else ():
                try:
                    file = attached_part(part)
                except UsageError as exc:
                    if newest is None:  # an earlier message's was reported in its turn
                        problems.append(exc)
                    continue
                if file is not None and _is_readable(file):
                    found.setdefault(file.key, file)
            newest = len(found) if newest is None else newest
        parts = list(found.values())[:MOST_FILES]
        return TurnFiles(parts, problems, newest or 0, reader, clients, settings)

    async def passages(self, part: AttachedPart, question: str, warn: Warn) -> SourceResult:
        """Return the passages of a file for the question, when all files have been read. Raises
        HostError if it cannot be read."""
        try:
            text = self._texts[part.key] = await self._read_text(part)
        finally:
            self._read += 1
            if self._read >= len(self.parts):
                self._all_read.set()
        for note in text.notes[:_MOST_NOTES]:
            await warn("attachment", f"{part.name}: {note}")
        await self._all_read.wait()
        chosen = await self._choose(part, text, question)
        found, every = len(chosen), len(text.passages)
        self._notes[part.key] = (
            "its text is among the sources"
            if found == every
            else f"long, searched for the question: {found} of its {every} passages are among the"
            " sources"
        )
        items = (_item(part, at, text.passages[at], score) for at, score in chosen)
        return SourceResult(items=tuple(items))

    def noted(self, messages: Sequence[Message]) -> list[Message]:
        """Return the messages with a note in place of each file or picture that was read."""
        return [self._noted(message) if self._notes else message for message in messages]

    def _noted(self, message: Message) -> Message:
        if not isinstance(message.content, list):
            return message
        content = [self._note(part) or part for part in message.content]
        return message.model_copy(update={"content": content})

    def _note(self, part: Mapping[str, Any]) -> dict[str, Any] | None:
        try:
            file = attached_part(part) or attached_picture(part)
        except UsageError:
            return None
        note = self._notes.get(file.key) if file is not None else None
        if file is None or note is None:
            return None
        return {"type": "text", "text": f"[attached file {file.name}: {note}]"}

    async def content(self, part: AttachedPart) -> tuple[str, bytes]:
        """Return the media type (empty: not known) and the bytes of a file. Raises UsageError,
        NotPermitted, SourceError."""
        kind, data = await self._fetch(part) if part.address else ("", part.data)
        if len(data) > self._settings.file_mb * 1024 * 1024:
            raise UsageError(
                f"the file {part.name!r} is larger than {self._settings.file_mb:g} MB",
                hint="attachments.file_mb",
            )
        return part.media_type or kind, data

    def note(self, part: AttachedPart, text: str) -> None:
        """Put a note in place of a file or picture, in what the model reads."""
        self._notes[part.key] = text

    async def _read_text(self, part: AttachedPart) -> AttachedText:
        limit = self._settings.timeout_ms
        try:
            with anyio.fail_after(limit / 1000):
                kind, data = await self.content(part)
                return await self._reader().read(part.name, kind, data)
        except TimeoutError:
            raise SourceTimeout(
                f"the file {part.name!r} was not read within {limit} ms",
                hint="attachments.timeout_ms",
            ) from None

    async def _fetch(self, part: AttachedPart) -> tuple[str, bytes]:
        """Return the media type and the content of an address. Raises NotPermitted,
        SourceError."""
        if not part.address.startswith("https://"):
            raise UsageError(f"the address of the file {part.name!r} must begin with https://")
        settings = self._settings
        if not settings.hosts:
            raise NotPermitted(
                f"not permitted: the file {part.name!r} is given by address",
                hint="attachments.hosts lists the hosts; or send its content",
            )
        client = self._clients.of(
            HttpSettings(
                hosts=settings.hosts,
                timeout_ms=settings.timeout_ms,
                max_kb=max(1, round(settings.file_mb * 1024)),
            )
        )
        try:
            answer = await client.request("GET", part.address)
        except NotPermitted as exc:
            message = f"not permitted: the address of the file {part.name!r}: {exc.message}"
            raise NotPermitted(message, hint="attachments.hosts") from exc
        if not 200 <= answer.status < 300:
            raise SourceError(
                f"the file {part.name!r} was not read: its host answered with status"
                f" {answer.status}"
            )
        return answer.media_type, answer.body

    async def _choose(
        self, part: AttachedPart, text: AttachedText, question: str
    ) -> list[tuple[int, float]]:
        """Return the positions of the passages for the model, with their scores."""
        if part.key in self._whole():
            return [(at, 1.0) for at in range(len(text.passages))]
        settings, found = self._settings, list[tuple[int, float]]()
        if question:
            found = await text.best(
                question,
                settings.passages,
                embedding=settings.embedding,
                embedding_ms=settings.embedding_ms,
            )
        near = bool(found) and found[0][1] >= _NEAR
        if near or part not in self.parts[: self._newest]:
            return found
        # "Summarise this": the beginning says what the file is.
        begin = [(at, 1.0) for at in range(min(_BEGINNING, len(text.passages)))]
        rest = [each for each in found if each[0] >= _BEGINNING]
        return [*begin, *rest[: max(0, settings.passages - _BEGINNING)]]

    def _whole(self) -> set[str]:
        """Return the keys of the files that reach the model whole."""
        whole: set[str] = set()
        left = self._settings.whole_characters
        for part in self.parts:
            text = self._texts.get(part.key)
            size = sum(len(each.text) for each in text.passages) if text else 0
            if text and size <= left:
                whole.add(part.key)
                left -= size
        return whole


def _is_readable(file: AttachedPart) -> bool:
    """Return whether it has content that is no picture; an id alone is one of the model's host."""
    return bool(file.data_url or file.address) and not file.media_type.startswith("image/")


def _item(part: AttachedPart, at: int, passage: AttachedPassage, score: float) -> Item:
    page = f"{part.name}, p. {passage.page}" if passage.page else part.name
    return Item(
        type="kb",
        title=f"{page} › {passage.heading}" if passage.heading else page,
        content=passage.text,
        score=score,
        document_id=part.name,
        collection=COLLECTION,
        extent=Extent(start=passage.start, end=passage.end),
        key=f"file:{part.key}#{at}",
    )
