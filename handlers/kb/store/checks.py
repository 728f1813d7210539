"""Checks of every store before it writes or searches: a collection has its declared settings, and a
question has a tenant if the documents have."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import islice

from groundhook.core.errors import ConfigError, NotPermitted, StorageError, UsageError
from groundhook.core.types.collection_spec import CollectionSpec
from groundhook.handlers.kb.language import language_of
from groundhook.handlers.kb.store.port import MOST_PASSAGES, CollectionSettings, FullDocument

_DECIDE = 100  # passages that decide the language of a collection


def refuse_other_settings(
    collection: str, stored: CollectionSettings, declared: CollectionSettings
) -> None:
    """Raise ConfigError if a collection was made with other settings than are declared now."""
    if stored.analyser != declared.analyser:
        raise ConfigError(
            f"collection {collection!r} was made by version {stored.analyser} of the analyser, and"
            f" questions cut by version {declared.analyser} would not match its words",
            hint=f"rebuild it from its stored texts: `groundhook kb rebuild {collection}`",
        )
    refuse_other_tenancy(collection, stored, declared)
    before, now = _embedding_of(stored), _embedding_of(declared)
    same_language = declared.language in ("auto", stored.language)
    if before == now and same_language:
        return
    if not same_language:
        before, now = f"analyser language {stored.language!r}", f"{declared.language!r}"
    raise ConfigError(
        f"collection {collection!r} was made with {before}, and is declared with {now}",
        hint=(
            "declare it as before, or rebuild it from its stored texts: `groundhook kb rebuild"
            f" {collection}`"
        ),
    )


def refuse_other_tenancy(
    collection: str, stored: CollectionSettings, declared: CollectionSettings
) -> None:
    """Raise ConfigError if a collection was made with tenants and is declared without, or the
    reverse: then no request would find its documents, or every request would."""
    if stored.tenanted != declared.tenanted:
        before, now = (
            ("with" if settings.tenanted else "without") + " tenants"
            for settings in (stored, declared)
        )
        raise ConfigError(
            f"collection {collection!r} was made {before}, and is declared {now}",
            hint=(
                "declare `tenant_field` as before, or remove its documents and add them again: "
                f"`groundhook kb remove {collection} --all`"
            ),
        )


def detect_language(
    settings: CollectionSettings, documents: Iterable[FullDocument]
) -> CollectionSettings:
    """Return the settings with the language of the first passages in place of "auto"."""
    if settings.language != "auto":
        return settings
    texts = (passage.text for document in documents for passage in document.passages)
    return replace(settings, language=language_of(" ".join(islice(texts, _DECIDE))))


def refuse_too_long(documents: Sequence[FullDocument]) -> None:
    """Raise StorageError for a document with more passages than a store can number."""
    for document in documents:
        if len(document.passages) > MOST_PASSAGES:
            raise StorageError(
                f"document {document.document!r} has more than {MOST_PASSAGES} passages",
                hint="split the file",
            )


def refuse_without_tenant(
    collection: str, settings: CollectionSettings, tenant: str | None
) -> None:
    """Raise NotPermitted if a collection has tenants and the question has none."""
    # Callers check this too. It is repeated here, since a mistake would show one tenant's documents
    # to another.
    if settings.tenanted and not tenant:
        raise NotPermitted(
            f"collection {collection!r} keeps its tenants apart, and the search names none"
        )


def _embedding_of(settings: CollectionSettings) -> str:
    return f"embedding {settings.provider!r} {settings.model!r} of {settings.dimensions} dimensions"


def refuse_read_only(spec: CollectionSpec) -> None:
    """Raise UsageError for a change of a collection that another program made."""
    if spec.existing is not None:
        raise UsageError(
            f"collection {spec.id!r} is only read: another program made it (`existing` in its"
            " .kb.yao)",
            hint="change it with that program; `groundhook kb export` and `kb import` copy it into"
            " a collection of the app's own",
        )
