"""Which of its names is the id of a document: identity is the file, and the id a short name of it.

A document keeps the id that it is stored with. A new one gets its plain name, the path below the
given folder, unless that is the id of another file which still exists; then the name of its folder
comes before it. So folders with the same relative paths do not replace each other.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from groundhook.core.errors import IngestError
from groundhook.handlers.kb.ingest.sources import (
    FEED,
    FEED_NAME,
    UPLOAD,
    PlannedDocument,
    same_file,
)
from groundhook.handlers.kb.store.port import DocumentRecord


@dataclass(frozen=True)
class Chosen:
    """The id of a document. `beside` is the file that has the plain name of a new document, and
    `after` the file, no longer there, whose document this one replaces."""

    id: str
    beside: str = ""
    after: str = ""


def choose(item: PlannedDocument, stored: Mapping[str, DocumentRecord]) -> Chosen | IngestError:
    """Return the id of a document, or the error if other files have both of its names; `stored` has
    what the collection knows under them. Reads the file system."""
    source = item.file.source
    names = [name for name in (item.document, item.other) if name]
    for name in names:
        # Documents of tools, and those of old versions, have no source.
        if name in stored and (not stored[name].source or same_file(stored[name].source, source)):
            return Chosen(name)
    possible = names if item.file.other_free else names[:1]
    for name in possible:
        if name not in stored:
            plain = stored.get(item.document) if name != item.document else None
            return Chosen(name, beside=plain.source if plain else "")
        if _is_gone(stored[name].source):
            return Chosen(name, after=stored[name].source)
    return _refusal(item, {name: stored[name].source for name in possible})


def moved_notes(chosen: Collection[Chosen]) -> list[str]:
    """Return notes for the report: new documents whose id has the name of their folder, and
    documents that replaced those of files that are no longer there."""
    notes = []
    if beside := [each for each in chosen if each.beside]:
        first = beside[0]
        notes.append(
            "new documents whose id begins with the name of their folder, because another file has"
            f" the rest of it: {len(beside)}, as {first.id!r} beside {first.beside!r} (if they"
            " replace those, remove those with `groundhook kb remove`)"
        )
    if after := [each for each in chosen if each.after]:
        first = after[0]
        notes.append(
            f"documents that replaced those of files that no longer exist: {len(after)}, as"
            f" {first.id!r} of {first.after!r}"
        )
    return notes


def _is_gone(source: str) -> bool:
    """Return whether a stored source no longer exists; one that cannot be seen is not gone."""
    if source in (FEED, UPLOAD):
        return False
    try:
        os.stat(source)  # noqa: PTH116
    except (FileNotFoundError, NotADirectoryError):
        return True
    except (OSError, ValueError):
        return False
    return False


def _refusal(item: PlannedDocument, owners: Mapping[str, str]) -> IngestError:
    if item.file.uploaded:  # the client may not know the files of this machine
        return IngestError(
            f"{item.document!r} was not added: a document that was not uploaded has this id (send"
            " the file under another name, or first remove that document)"
        )
    shown = item.document if item.row else str(item.file.path)
    ids = _listed([*owners])
    names = {FEED: FEED_NAME, UPLOAD: "an upload"}
    files = _listed([names.get(each, each) for each in dict.fromkeys(owners.values())])
    what = "is the id of a document" if len(owners) == 1 else "are the ids of documents"
    advice = (
        "give it another id"
        if item.file.source == FEED
        else "add the folder that holds all of them"
    )
    return IngestError(
        f"{shown!r} was not added: {ids} {what} from {files} ({advice}, or first remove what it"
        " replaces with `groundhook kb remove`)"
    )


def _listed(names: Sequence[str]) -> str:
    return " and ".join(map(repr, names))
