"""The layout of a collection on a Qdrant server: names, points, indexes. Pure.

Three kinds of points share a Qdrant collection: passages, with both vectors; a record for each
document, without; and one record of what the collection was made with. Ids are derived from what a
point is, so that a document's passages are found without a search.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import PurePath
from typing import Any

from qdrant_client import models

from groundhook.handlers.kb.analyse import Analyser
from groundhook.handlers.kb.balance import format_sums
from groundhook.handlers.kb.server.filter import RECORD, SETTINGS
from groundhook.handlers.kb.store import points
from groundhook.handlers.kb.store.messages import pack_vector, unpack_vector
from groundhook.handlers.kb.store.port import CollectionSettings, DocumentRecord, FullDocument

SETTINGS_ID = str(uuid.uuid5(uuid.NAMESPACE_URL, "groundhook:made"))
_STORED = tuple(field.name for field in fields(DocumentRecord))


def alias(prefix: str, collection: str) -> str:
    """Return the name of a collection on the server: letters, digits, `.`, `-` and `~` unchanged,
    other bytes as `_xx`."""
    escaped = re.sub(
        r"[^A-Za-z0-9.~-]",
        lambda match: "".join(f"_{byte:02x}" for byte in match[0].encode()),
        collection,
    )
    return prefix + escaped


def record_id(tenant: str, document: str) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_URL, "groundhook:" + json.dumps([tenant, document])))


@dataclass(frozen=True, order=True)
class PassageKey:
    """A passage of a version of a document. Equally good ones are ordered by their places."""

    tenant: str
    document: str
    ordinal: int
    version: str

    @property
    def point(self) -> str:
        return passage_id(self.version, self.ordinal)

    @property
    def record(self) -> str:
        return record_id(self.tenant, self.document)


PASSAGE_KEY = [field.name for field in fields(PassageKey)]


def parse_key(payload: Mapping[str, Any] | None) -> PassageKey:
    return PassageKey(**{name: (payload or {})[name] for name in PASSAGE_KEY})


def passage_id(version: str, ordinal: int) -> str:
    return str(uuid.uuid5(uuid.UUID(version), str(ordinal)))


def passage_points(
    document: FullDocument, version: str, analyser: Analyser, usual: str
) -> Iterator[models.PointStruct]:
    """Yield a version's passages as hidden points."""
    for ordinal, passage in enumerate(document.passages):
        words = analyser.document(passage.text)
        vectors: dict[str, Any] = {
            points.DENSE: unpack_vector(passage.vector),
            points.WORDS: models.SparseVector(
                indices=list(words.indices), values=list(words.values)
            ),
        }
        where = PassageKey(document.tenant, document.document, ordinal, version)
        payload = {
            **asdict(where),
            "hidden": True,
            **points.point_payload(document, ordinal, usual),
        }
        yield models.PointStruct(id=passage_id(version, ordinal), vector=vectors, payload=payload)


def record_point(document: FullDocument, version: str, usual: str) -> models.PointStruct:
    payload = {
        **{name: getattr(document, name) for name in _STORED if name != "chunks"},
        "kind": RECORD,
        "fields": points.encode_fields(document.fields),
        **source_payload(document.url, document.source),
        "version": version,
        "chunks": len(document.passages),
        "languages": format_sums(points.language_sums(document, usual)),
    }
    return models.PointStruct(
        id=record_id(document.tenant, document.document), vector={}, payload=payload
    )


def source_payload(url: str, source: str) -> dict[str, Any]:
    """Return the part of a record with its document's source. `within`: the file and every folder
    above it."""
    parents = [str(parent) for parent in PurePath(source).parents if str(parent) != "."]
    return {"url": url, "source": source, "within": [source, *parents] if source else []}


def settings_point(settings: CollectionSettings) -> models.PointStruct:
    return models.PointStruct(
        id=SETTINGS_ID, vector={}, payload={"kind": SETTINGS, **asdict(settings)}
    )


def parse_settings(payload: Mapping[str, Any] | None) -> CollectionSettings | None:
    if payload is None:
        return None
    known = {field.name for field in fields(CollectionSettings)}
    return CollectionSettings(
        **{"analyser": 0, **{name: value for name, value in payload.items() if name in known}}
    )


def parse_record(payload: Mapping[str, Any]) -> DocumentRecord:
    return DocumentRecord(**{name: payload[name] for name in _STORED if name in payload})


def payload_and_vector(record: models.Record) -> tuple[Mapping[str, Any], bytes]:
    """Return a passage's payload and vector."""
    vectors: Any = record.vector
    return record.payload or {}, pack_vector(vectors[points.DENSE])


def creation_arguments(settings: CollectionSettings) -> dict[str, Any]:
    """Return the arguments of the client's `create_collection`."""
    return {
        "vectors_config": {
            points.DENSE: models.VectorParams(
                size=settings.dimensions,
                distance=models.Distance.COSINE,
                on_disk=True if settings.on_disk else None,
            )
        },
        "sparse_vectors_config": {
            points.WORDS: models.SparseVectorParams(
                modifier=models.Modifier.IDF,
                index=models.SparseIndexParams(full_scan_threshold=_SCANNED),
            )
        },
        "shard_number": settings.shards,
        "replication_factor": settings.replicas,
        "quantization_config": _QUANTISATION[settings.quantisation],
    }


# If a filter passes fewer passages of a segment, their words are compared one by one;
# `handlers.kb.embedded.edge`, whose engine is the same, has the times.
_SCANNED = 20_000

_QUANTISATION: Mapping[str, models.QuantizationConfig | None] = {
    "none": None,
    "scalar": models.ScalarQuantization(
        scalar=models.ScalarQuantizationConfig(type=models.ScalarType.INT8, always_ram=True)
    ),
    "binary": models.BinaryQuantization(binary=models.BinaryQuantizationConfig(always_ram=True)),
}


def indexes(settings: CollectionSettings) -> Sequence[tuple[str, Any]]:
    """Return the payload indexes, which filters use. A tenant's points are stored together."""
    tenant: Any = models.KeywordIndexParams(
        type=models.KeywordIndexType.KEYWORD, is_tenant=settings.tenanted or None
    )
    keyword = models.PayloadSchemaType.KEYWORD
    return [
        *(
            (points.payload_path(name), FIELDS[type])
            for name, type in settings.fields.items()
            if type in FIELDS
        ),
        ("tenant", tenant),
        ("document", keyword),
        (points.LANGUAGE, keyword),
        ("version", keyword),
        ("kind", keyword),
        ("within", keyword),
        ("hidden", models.PayloadSchemaType.BOOL),
    ]


_NUMBER = models.IntegerIndexType.INTEGER
FIELDS: Mapping[str, Any] = {  # indexes of payload fields by type
    "keyword": models.PayloadSchemaType.KEYWORD,
    "integer": models.IntegerIndexParams(type=_NUMBER, lookup=True, range=True),
    "boolean": models.IntegerIndexParams(type=_NUMBER, lookup=True, range=False),
    "float": models.PayloadSchemaType.FLOAT,
    "datetime": models.PayloadSchemaType.DATETIME,
}
