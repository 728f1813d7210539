"""Pictures that the turn's language model does not see: what `uses.vision` names describes them.

A description is a source of the turn, like the text of a file: it can be cited, and is data for the
model. It is made once for a chat, without a question, and kept and removed with it. A picture that
could not be described stays as it is: the connector says that it was not read.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import anyio

from groundhook.core.errors import (
    ConfigError,
    DelegateError,
    HostError,
    PluginError,
    SourceTimeout,
    StorageError,
    UnknownName,
    UsageError,
)
from groundhook.core.ports import ReadsParts, SourceResult
from groundhook.core.settings import BY_CONNECTOR, DISABLED
from groundhook.core.types.attached import (
    COLLECTION,
    AttachedPart,
    attached_part,
    attached_picture,
    data_url,
)
from groundhook.core.types.delegation import VisionAsk
from groundhook.core.types.search import Item
from groundhook.core.types.turn import connector_ids
from groundhook.core.types.uses import VISION
from groundhook.host.turn.run import AssistantRun

LONGEST = 8000  # characters of a description
_NOTE = "a picture that this model does not see; its description is among the sources"
# The formats that models see, by how their files begin.
_FORMATS = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
)


def unseen_pictures(run: AssistantRun) -> Sequence[AttachedPart]:
    """Return the pictures of the user's messages that the first usable model does not see, the
    newest first, each once."""
    if run.settings.uses.vision in ("", "builtin", DISABLED):
        return ()
    found: dict[str, AttachedPart] = {}
    for message in reversed(run.request.messages):
        for part in message.content if isinstance(message.content, list) else ():
            picture = _picture(part) if message.role == "user" else None
            if picture is not None and not _sees(run, run.package.id, run.connectors, part):
                found.setdefault(picture.key, picture)
    return list(found.values())[: run.runtime.app.settings.attachments.pictures]


async def describe(run: AssistantRun, picture: AttachedPart) -> SourceResult:
    """Return the description of a picture. Raises HostError if there is none."""
    by, limit = run.settings.uses.vision, run.runtime.app.settings.attachments.timeout_ms
    ends = anyio.current_time() + limit / 1000
    try:
        with anyio.fail_after(limit / 1000):
            _, data = await run.files.content(picture)
    except TimeoutError:
        raise SourceTimeout(
            f"the picture {picture.name!r} did not arrive within {limit} ms",
            hint="attachments.timeout_ms",
        ) from None
    kind = _format(data)
    if not kind:
        raise UsageError(f"{picture.name!r} is no PNG, JPEG, GIF or WebP picture")
    left_ms = max(1, round((ends - anyio.current_time()) * 1000))
    text = await _text(run, by, picture.name, data_url(data, kind), kind, left_ms)
    run.files.note(picture, _NOTE)
    item = Item(
        type="kb",
        title=f"{picture.name} (description of a picture)",
        content=text,
        score=1.0,
        document_id=picture.name,
        collection=COLLECTION,
        key=f"file:{picture.key}#0",
    )
    return SourceResult(items=(item,))


async def _text(run: AssistantRun, by: str, name: str, url: str, kind: str, timeout_ms: int) -> str:
    """Return the description that was kept, else a new one."""
    digest = hashlib.sha256(f"{by}\0{name}\0{url}".encode()).hexdigest()
    chat = run.request.conversation.pictures if run.request.conversation else None
    kept = run.runtime.picture_texts
    key = (run.package.id, run.request.identity.model_dump_json(), digest)
    known = await chat.get(digest) if chat else kept.get(key)
    if known:
        return known
    if _is_blind(run, by, url):
        raise DelegateError(
            f"the picture {name!r} was not described: the model of {by!r} does not see pictures",
            hint="uses.vision names one with the capability `vision`",
        )
    answer = await run.searcher.scope.delegates.ask(
        VISION,
        by,
        VisionAsk(prompt=VISION.task, name=name, media_type=kind, image=url, max_length=LONGEST),
        timeout_ms=timeout_ms,
        hint="attachments.timeout_ms",
        tries=1,
    )
    text = answer.text[:LONGEST]
    if chat is None:
        kept.put(key, text)
        return text
    try:
        await chat.put(digest, text)
    except StorageError as exc:
        await run.searcher.scope.warn(exc.code, f"{exc}; {name!r} is described again when needed")
    return text


def _picture(part: Mapping[str, Any]) -> AttachedPart | None:
    """Return the picture of a part; None for another part, and for one without content."""
    try:
        file = attached_picture(part) or attached_part(part)
    except UsageError:
        return None  # reported with the files of the turn
    if file is None or not (file.data_url or file.address):
        return None
    is_picture = part.get("type") == "image_url" or file.media_type.startswith("image/")
    return file if is_picture else None


def _sees(
    run: AssistantRun, assistant_id: str, names: Sequence[str], part: Mapping[str, Any]
) -> bool:
    """Return whether the first of an assistant's models that can be used reads a part. Raises
    UnknownName."""
    app = run.runtime.app
    for name in names:
        id = app.connector_id(assistant_id, name)
        try:
            connector = run.runtime.connectors(id)
        except (ConfigError, PluginError):
            continue  # the next one answers
        if isinstance(connector, ReadsParts):
            return connector.reads(part)
        try:
            return app.connector(id).can("vision", True)
        except UnknownName:  # one that the program gives
            return True
    return True


def _is_blind(run: AssistantRun, by: str, url: str) -> bool:
    """Return whether a language model or an assistant cannot see pictures: its model would answer a
    note in place of the picture. A tool, and an assistant with a hook, may have other means."""
    part = {"type": "image_url", "image_url": {"url": url}}
    try:
        if by.startswith(BY_CONNECTOR):
            return not _sees(run, run.package.id, (by.removeprefix(BY_CONNECTOR),), part)
        if by.startswith("mcp:"):
            return False
        package = run.runtime.app.package(by)
        settings = run.runtime.app.settings_for(package).settings
        names = connector_ids(settings.connector)
        return package.hook is None and not _sees(run, package.id, names, part)
    except HostError:
        return False  # an unknown name, which the step reports


def _format(data: bytes) -> str:
    """Return the media type of a picture; empty for other files."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for begins, kind in _FORMATS if data.startswith(begins)), "")
