"""Reads the JSON Lines files that toolkits are synchronised with."""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from groundhook.core.errors import ConfigError, Place, SourceMalformed

_Line = TypeVar("_Line", bound=BaseModel)


def lines_of(path: Path, shown: str, model: type[_Line]) -> Iterator[tuple[_Line, Place]]:
    """Yield the lines of a file, or of all `*.jsonl` files in a folder in the order of their names.
    `shown` is the path in messages. Raises ConfigError for a path that does not exist,
    SourceMalformed for a line that is not UTF-8 or JSON, or does not fit the model."""
    files = sorted(path.glob("*.jsonl")) if path.is_dir() else [path]
    if not files or not files[0].is_file():
        raise ConfigError(
            f"there is nothing to read at {shown}",
            hint="set source.file of the toolkit to a .jsonl file, or a folder of them",
        )
    for file in files:
        name = shown if file == path else f"{shown.rstrip('/')}/{file.name}"
        with file.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                plain = line.removeprefix(BOM_UTF8) if number == 1 else line
                if plain.strip():
                    place = Place(name, number)
                    yield _parsed(plain, place, model), place


def _parsed(line: bytes, place: Place, model: type[_Line]) -> _Line:
    try:
        return model.model_validate_json(line.decode())
    except UnicodeDecodeError as exc:
        raise SourceMalformed("the line is not in UTF-8", place=place) from exc
    except ValidationError as exc:
        first = exc.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        message = f"{where}: {first['msg']}" if where else first["msg"]
        raise SourceMalformed(message, place=place) from exc
