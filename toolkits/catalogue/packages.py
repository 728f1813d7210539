"""Packages of CKAN as documents: one for the dataset, one for each of its resources. Pure."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any
from urllib.parse import quote

from groundhook.core.sync_source import DocumentsByCollection, digest_of
from groundhook.core.types.collection_queries import CollectionDocument
from groundhook.core.unseen import clean
from groundhook.toolkits.catalogue.columns import declared, words
from groundhook.toolkits.catalogue.freshness import frequency_of
from groundhook.toolkits.catalogue.names import (
    entries,
    format_key,
    format_of,
    keys,
    parts_of,
)
from groundhook.toolkits.catalogue.settings import CatalogueCollections
from groundhook.toolkits.catalogue.several import PackageRecord, keys_of

LAYOUT = 6  # raised when the form of documents changes, so that all are made again
LONGEST_TEXT = 8_000  # characters of a document: about 2,000 tokens
_MOST_RESOURCES = 40  # whose names are part of a dataset's text
_PARENT_NOTES = 400  # characters of a dataset's description in the text of its resources
_NO_COLUMNS: Mapping[str, Sequence[str]] = {}
_NO_IDS: Mapping[str, str] = {}
_UNSTABLE = ("tracking_summary", "score", "index_id", "validated_data_dict")  # differ by request


@dataclass(frozen=True, kw_only=True)
class PackageReader:
    """Makes documents for the collections of a toolkit. `portal` is the address of the portal ("":
    a dataset's own), `tenant` the tenant whose documents they are. `columns` reads the columns of
    a package's files that it does not declare, by resource (None: they are not read)."""

    collections: CatalogueCollections
    portal: str = ""
    tenant: str = ""
    columns: Callable[[Mapping[str, Any]], Awaitable[Mapping[str, Sequence[str]]]] | None = None

    def record(self, package: Mapping[str, Any]) -> PackageRecord:
        """Return a package as a record of a sync."""
        stable = {name: value for name, value in package.items() if name not in _UNSTABLE}
        columns: dict[str, Sequence[str]] = {}

        async def prepare() -> None:
            if self.columns is not None:
                columns.update(await self.columns(package))

        def make(ids: Mapping[str, str] = _NO_IDS) -> DocumentsByCollection:
            return self.documents(package, columns, ids)

        made_by = [LAYOUT, self.portal, self.tenant, self.columns is not None]
        return PackageRecord(
            id=str(package["id"]),
            digest=digest_of([*made_by, stable]),
            make=make,
            prepare=prepare if self.columns is not None else None,
            tenant=self.tenant,
            same=keys_of(package),
            resources=[str(each["id"]) for each in _resources(package)],
            make_with=make,
        )

    def documents(
        self,
        package: Mapping[str, Any],
        columns: Mapping[str, Sequence[str]] = _NO_COLUMNS,
        ids: Mapping[str, str] = _NO_IDS,
    ) -> dict[str, list[CollectionDocument]]:
        """Return the documents of a package, by collection. `columns` are those that were read, by
        resource; `ids` are the ids of documents whose resource has another."""
        about = _About.of(package)
        return {
            self.collections.datasets: [self._dataset(package, about)],
            self.collections.resources: [
                self._resource(
                    resource,
                    about,
                    declared(resource) or columns.get(id, ()),
                    ids.get(id, id),
                )
                for resource in about.resources
                for id in [str(resource["id"])]
            ],
        }

    def _dataset(self, package: Mapping[str, Any], about: _About) -> CollectionDocument:
        named = [_named(each) for each in about.resources[:_MOST_RESOURCES]]
        text = _joined(
            *about.titles,
            *about.notes,
            about.published,
            _sentence(", ".join(filter(None, named))),
        )
        formats = list(dict.fromkeys(filter(None, map(format_of, about.resources))))
        fields: dict[str, Any] = {
            "name": about.name,
            "dataset_title": about.title,
            "description": about.notes[0] if about.notes else "",
            "organization": about.organization,
            "organization_title": about.organization_title,
            "organization_keys": about.organization_keys,
            "tags": about.tags,
            "tag_keys": keys([*about.tags, *about.tag_names]),
            "formats": formats,
            "format_keys": [format_key(format) for format in formats],
            "modified": _text(package, "metadata_modified") or _text(package, "modified"),
            "frequency": frequency_of(package),
        }
        return CollectionDocument(
            id=about.id,
            text=text or about.title,
            title=about.titles[0] if about.titles else "",  # ids are not searched for
            url=self._address(package, about),
            fields={name: value for name, value in fields.items() if value},
            tenant=self.tenant,
        )

    def _resource(
        self, resource: Mapping[str, Any], about: _About, columns: Sequence[str], id: str
    ) -> CollectionDocument:
        name = _text(resource, "name") or _file_name(resource) or about.title
        description = _text(resource, "description")
        format = format_of(dict(resource))
        # "CSV files about education" matches the words of the dataset.
        text = _joined(
            name,
            description,
            format,
            f"Columns: {words(columns)}." if columns else "",
            *about.titles,
            *(note[:_PARENT_NOTES] for note in about.notes),
            about.organization_title,
            ", ".join(about.tags),
        )
        fields: dict[str, Any] = {
            "name": name,
            "description": description,
            "format": format,
            "format_keys": [format_key(format)] if format else [],
            "columns": list(columns),
            "address": _text(resource, "url"),
            "dataset_id": about.id,
            "dataset_keys": keys([about.id, about.name]),
            "dataset_title": about.title,
        }
        return CollectionDocument(
            id=id,
            text=text,
            title=name,
            url=_linkable(_text(resource, "url")),
            fields={name: value for name, value in fields.items() if value},
            tenant=self.tenant,
        )

    def _address(self, package: Mapping[str, Any], about: _About) -> str:
        if self.portal:
            return (
                f"{self.portal}/dataset/{quote(about.name or about.id, safe='', errors='replace')}"
            )
        return _linkable(_text(package, "url"))


@dataclass(frozen=True, kw_only=True)
class _About:
    """The common content of a dataset's document and those of its resources. `titles` and `notes`
    begin with the package's own and go on with translations."""

    id: str
    name: str
    title: str
    titles: Sequence[str]
    notes: Sequence[str]
    organization: str
    organization_title: str
    organization_keys: Sequence[str]
    tags: Sequence[str]
    tag_names: Sequence[str]
    resources: Sequence[dict[str, Any]]

    @property
    def published(self) -> str:
        """The publisher and the tags as one sentence, since answers quote sentences."""
        about = ": ".join(filter(None, [self.organization_title, ", ".join(self.tags)]))
        return _sentence(about)

    @staticmethod
    def of(package: Mapping[str, Any]) -> _About:
        given = package.get("organization")
        organization = given if isinstance(given, Mapping) else {}
        tags = entries(package, "tags")
        id, name = str(package["id"]), _text(package, "name")
        return _About(
            id=id,
            name=name,
            title=_text(package, "title") or name or id,
            titles=list(_translated(package, "title")),
            notes=list(_translated(package, "notes")),
            organization=_text(organization, "name"),
            organization_title=_text(organization, "title") or _text(organization, "name"),
            organization_keys=keys(organization.get(each) for each in ("name", "title", "id")),
            tags=list(
                dict.fromkeys(
                    shown
                    for tag in tags
                    if (shown := _text(tag, "display_name") or _text(tag, "name"))
                )
            ),
            tag_names=[_text(tag, "name") for tag in tags],
            resources=_resources(package),
        )


def _resources(package: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the resources; of those with the same id, each after the first has the id of its
    dataset before it."""
    found: dict[str, dict[str, Any]] = {}
    for resource in entries(package, "resources"):
        if resource.get("id") and resource.get("state", "active") == "active":
            id = str(resource["id"])
            while id in found:
                id = f"{package['id']}:{id}"
            found[id] = {**resource, "id": id}
    return list(found.values())


def _translated(package: Mapping[str, Any], name: str) -> Iterator[str]:
    """Yield a text and its translations, each once."""
    own = _text(package, name)
    more = package.get(f"{name}_translated")
    others = more.values() if isinstance(more, Mapping) else ()
    texts = chain([own], (clean(each).strip() for each in others if isinstance(each, str)))
    yield from dict.fromkeys(filter(None, texts))


def _text(value: Mapping[str, Any], name: str) -> str:
    found = value.get(name)
    return clean(found).strip() if isinstance(found, str) else ""


def _joined(*parts: str) -> str:
    return "\n\n".join(filter(None, parts))[:LONGEST_TEXT]


def _named(resource: Mapping[str, Any]) -> str:
    """Return the name of a resource with its format: "Stops (CSV)"."""
    name, format = _text(resource, "name"), format_of(dict(resource))
    return f"{name} ({format})" if name and format else name or format


def _sentence(text: str) -> str:
    return f"{text}." if text and text[-1] not in ".!?" else text


def _file_name(resource: Mapping[str, Any]) -> str:
    return parts_of(_text(resource, "url")).path.rpartition("/")[2]


def _linkable(address: str) -> str:
    return address if address.startswith(("http://", "https://")) else ""
