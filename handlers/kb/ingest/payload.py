"""What a document says of itself, as the payload fields that its collection declares. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from groundhook.host.core.errors import IngestError, Place
from groundhook.host.core.types.documents import DocumentField
from groundhook.host.core.types.fields import FieldType, FieldValue, field_value


def fields_of(
    said: Mapping[str, DocumentField], types: Mapping[str, FieldType], name: str
) -> dict[str, FieldValue]:
    """The declared fields that have a value. Raises IngestError, with file and line, for one of
    another type."""
    made: dict[str, FieldValue] = {}
    for field, type in types.items():
        if field not in said:
            continue
        try:
            value = field_value(said[field].value, type)
        except ValueError as exc:
            raise IngestError(
                f"was not added: {field!r} {exc}",
                place=Place(name, said[field].line),
                hint=f"`fields` declares it as {type}",
            ) from exc
        if value is not None:
            made[field] = value
    return made
