"""Convert the metadata of a document to the payload fields that its collection declares. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from groundhook.core.errors import IngestError, Place
from groundhook.core.types.documents import DocumentField
from groundhook.core.types.fields import FieldType, FieldValue, field_value


def fields_of(
    metadata: Mapping[str, DocumentField], types: Mapping[str, FieldType], name: str
) -> dict[str, FieldValue]:
    """Return the declared fields that have a value. Raises IngestError, with file and line, for a
    value of another type."""
    fields: dict[str, FieldValue] = {}
    for field, type in types.items():
        if field not in metadata:
            continue
        try:
            value = field_value(metadata[field].value, type)
        except ValueError as exc:
            raise IngestError(
                f"was not added: {field!r} {exc}",
                place=Place(name, metadata[field].line),
                hint=f"`fields` declares it as {type}",
            ) from exc
        if value is not None:
            fields[field] = value
    return fields
