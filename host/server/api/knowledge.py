"""Endpoints of collections for those who keep them: what is in them, why a passage is found or not,
adding and removing documents. Everything is of the caller's tenant."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any

import anyio
from anyio import to_thread
from starlette.datastructures import Headers, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import ClientDisconnect
from starlette.responses import Response, StreamingResponse

from groundhook.core.errors import HostError, NotPermitted, UnknownName, UsageError
from groundhook.core.json_lines import line
from groundhook.core.types.collection_spec import CollectionSpec
from groundhook.core.unseen import clean
from groundhook.host.server.api.sources import may_read
from groundhook.host.server.api.steps import StepLines, lines_of
from groundhook.host.server.problems import Refused, WrongRequest
from groundhook.host.server.serving import Call
from groundhook.host.server.turns.sse import JSON_LINES

MOST_LISTED = 1000  # documents of an answer
MOST_FILES = 100  # of one request
LONGEST_NAME = 300
LONGEST_PART = 255  # bytes of a folder's or a file's name, as most file systems allow
_UNUSABLE = re.compile(r"[\x00-\x1f\x7f\\:]")


class _WholeForm(MultiPartParser):
    """A parser that refuses a form without its end, and closes the files that it has begun."""

    def __init__(self, headers: Headers, pieces: AsyncGenerator[bytes]) -> None:
        super().__init__(headers, self._to_its_end(pieces), max_files=MOST_FILES, max_fields=0)
        self._ended = False

    def on_end(self) -> None:
        self._ended = True

    async def _to_its_end(self, pieces: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
        async for piece in pieces:
            yield piece
        if not self._ended:  # raised here, where the parser closes its files
            raise MultiPartException("it ends before its closing boundary")


async def list_collections(call: Call) -> Response:
    """Return the collections that the caller may keep, with counts."""
    host = call.serving.host
    collections = []
    searched = {each: _searched_by(call, each) for each in call.serving.offered(call.caller)}
    for id in sorted(host.app.collections):
        with suppress(HostError):  # not the caller's, or a file that `check` reports
            tenant = tenant_of(call, id)
            (listing,) = await host.kb.list_collections([id], tenant=tenant)
            spec = host.app.collections[id]
            collections.append(
                {
                    "id": id,
                    "name": spec.name,
                    "description": spec.description,
                    "documents": len(listing.documents),
                    "passages": listing.chunks,
                    "bytes": listing.source_bytes,
                    "language": listing.language,
                    "tenant": tenant,
                    "assistants": [each for each, ids in searched.items() if id in ids],
                }
            )
    return json_answer({"collections": collections})


def _searched_by(call: Call, assistant: str) -> tuple[str, ...]:
    """Return the collections that an assistant searches; none if its files are invalid."""
    try:
        settings = call.serving.host.settings(assistant)
    except HostError:
        return ()
    return settings.search.kb.collections or settings.kb.collections


async def list_documents(call: Call) -> Response:
    """Return the documents of a collection, by id."""
    id = call.request.path_params["collection"]
    (listing,) = await call.serving.host.kb.list_collections([id], tenant=tenant_of(call, id))
    documents = sorted(listing.documents, key=lambda each: each.document)
    shown = [
        {
            "document": each.document,
            "title": each.title,
            "passages": each.chunks,
            "bytes": each.bytes,
            "state": "ready" if each.chunks else "empty",
        }
        for each in documents[:MOST_LISTED]
    ]
    return json_answer({"id": id, "documents": shown, "total": len(documents)})


async def add_documents(call: Call) -> Response:
    """Add the files of a form to a collection; a line of JSON for each step."""
    id = call.request.path_params["collection"]
    tenant = tenant_of(call, id)
    call.admit_stream()
    await call.serving.limits.count("turns", call.caller.owner)
    uploads = call.serving.host.app.state / "uploads"
    await to_thread.run_sync(lambda: uploads.mkdir(parents=True, exist_ok=True))
    # Kept until the answer is over, which reads it.
    folder = TemporaryDirectory(dir=uploads, prefix="add-")
    try:
        names = await _receive(call, Path(folder.name))
    except BaseException:
        await to_thread.run_sync(folder.cleanup)
        raise
    return StreamingResponse(_added(call, id, tenant, folder, names), media_type=JSON_LINES)


async def _receive(call: Call, folder: Path) -> list[str]:
    """Write the files of a form to a folder, and return their names. Raises Refused for too many
    bytes or a body that arrives too slowly, UsageError for names that cannot be used."""
    limits, request = call.serving.settings.limits, call.request
    if not request.headers.get("content-type", "").startswith("multipart/form-data"):
        raise Refused("wrong_type", "the content type must be multipart/form-data")
    most = round(limits.upload_mb * 1024 * 1024)

    async def bounded() -> AsyncGenerator[bytes]:
        received = 0
        async for part in request.stream():
            received += len(part)
            if received > most:
                raise Refused(
                    "too_large",
                    f"an upload has at most {limits.upload_mb:g} MB (server.limits.upload_mb)",
                    headers={"connection": "close"},
                )
            yield part

    parser = _WholeForm(request.headers, bounded())
    names: list[str] = []
    try:
        with anyio.fail_after(limits.upload_s):
            form = await parser.parse()
        try:
            for _, file in form.multi_items():
                if isinstance(file, UploadFile):
                    name = _file_name(file.filename or "", names)
                    try:
                        await to_thread.run_sync(_copy, file.file, folder / name)
                    except FileExistsError:  # a file system that has one name for both
                        raise UsageError(f"two files have the name {name[:80]!r}") from None
                    names.append(name)
        finally:
            await form.close()
    except MultiPartException as exc:
        raise WrongRequest(f"the form cannot be read: {exc.message[:200]}") from None
    except TimeoutError:
        raise Refused("usage", f"the upload took longer than {limits.upload_s:g} s") from None
    except ClientDisconnect:
        raise Refused("usage", "the client left before it had sent its files") from None
    if not names:
        raise UsageError("the form has no file")
    return names


def _file_name(given: str, known: Sequence[str]) -> str:
    """Return the path of a file below the folder of the upload. Raises UsageError."""
    path = PurePosixPath(clean(given))
    parts = path.parts
    usable = 0 < len(given) <= LONGEST_NAME and 0 < len(parts) <= 8 and not path.is_absolute()
    if not usable or any(part.startswith(".") or _UNUSABLE.search(part) for part in parts):
        raise UsageError(f"a file cannot have the name {given[:80]!r}")
    if any(len(part.encode(errors="replace")) > LONGEST_PART for part in parts):
        raise UsageError(
            f"a file cannot have the name {given[:80]!r}: each part of a path has at most"
            f" {LONGEST_PART} bytes of UTF-8",
            hint="send it under a shorter name",
        )
    for other in map(PurePosixPath, known):
        if path == other:
            raise UsageError(f"two files have the name {given[:80]!r}")
        if path in other.parents or other in path.parents:
            raise UsageError(
                f"{str(other)[:80]!r} and {given[:80]!r} cannot be sent together: one is a"
                " file, and the other is in a folder of that name",
                hint="rename one, or send them in two requests",
            )
    return str(path)


def _copy(file: Any, to: Path) -> None:
    to.parent.mkdir(parents=True, exist_ok=True)
    file.seek(0)
    with to.open("xb") as out:
        while part := file.read(1 << 20):
            out.write(part)


async def _added(
    call: Call,
    collection: str,
    tenant: str | None,
    folder: TemporaryDirectory[str],
    names: Sequence[str],
) -> AsyncIterator[str]:
    """Add what a folder holds, and yield the progress, the outcome of each file, and the counts."""
    host = call.serving.host

    async def work(steps: StepLines) -> None:
        await steps.tell({"type": "received", "files": list(names)})
        report = await host.kb.add(
            collection,
            [Path(folder.name)],
            tenant=tenant or "",
            prune=False,
            uploaded=True,
            progress=lambda done, total, document, passages: steps.show(
                {
                    "type": "progress",
                    "done": done,
                    "total": total,
                    "document": document,
                    "passages": passages,
                }
            ),
            delegates=host.delegates(),
        )
        for file in report.files:
            fields = asdict(file)
            for key in ("path", "error"):  # without the folder of the server
                fields[key] = fields[key].replace(f"{folder.name}/", "")
            await steps.tell({"type": "file", **fields})
        unread = [name.replace(f"{folder.name}/", "") for name in report.unread]
        await steps.tell({"type": "done", "counts": dict(report.counts), "unread": unread})

    try:
        async for each in lines_of(call, work):
            yield each
    finally:
        with anyio.CancelScope(shield=True):
            await to_thread.run_sync(folder.cleanup)


async def remove_document(call: Call) -> Response:
    """Remove a document from a collection."""
    id = call.request.path_params["collection"]
    document = call.request.path_params["document"]
    tenant = tenant_of(call, id)
    await call.serving.host.remove_documents(id, [document], tenant=tenant or "")
    return Response(status_code=204)


def spec_of(call: Call, id: str) -> CollectionSpec:
    """Return a collection's declaration. Raises UnknownName also for one of others."""
    app = call.serving.host.app
    if id not in app.collections:
        raise UnknownName("collection", id[:200], ())
    may_read(call, "kb", id)
    return app.collections[id]


def tenant_of(call: Call, id: str) -> str | None:
    """Return the tenant of the caller in a collection; None for one without tenants. Raises
    UnknownName for a collection of others, Refused for one that is not open to the caller."""
    spec_of(call, id)
    try:
        return call.serving.host.kb.permitted_tenant(id, call.caller.identity)
    except NotPermitted as exc:
        raise Refused("not_permitted", exc.message) from exc


def json_answer(value: Any) -> Response:
    """Answer with a JSON value."""
    return Response(line(value), media_type="application/json")
