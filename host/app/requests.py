"""Converts the arguments of programs to values; errors name the path of the wrong part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from pydantic import ValidationError

from groundhook.core.app_settings import AttachmentSettings, TurnsSettings
from groundhook.core.errors import UsageError
from groundhook.core.types.attached import FILES, LONGEST_NAME, attached_part, data_url
from groundhook.core.types.base import dotted, validate_known, validation_problems, well_formed
from groundhook.core.types.turn import Message, TurnOptions, is_media

USUAL_LIMITS = TurnsSettings()
USUAL_ATTACHMENTS = AttachmentSettings()


def turn_options(
    search: bool | None,
    connector: str | Sequence[str] | None,
    options: TurnOptions | Mapping[str, Any] | None,
) -> TurnOptions:
    """Return the options of a turn, with `search` and `connector` set if they are given. Raises
    UsageError."""
    given = (
        options.model_dump(exclude_unset=True)
        if isinstance(options, TurnOptions)
        else dict(options or {})
    )
    overrides = {"search": search, "connector": connector}
    every = {**given, **{key: value for key, value in overrides.items() if value is not None}}
    valid: TurnOptions = validated(TurnOptions, every)
    return valid


def conversation(
    messages: str | Sequence[Message | Mapping[str, Any]],
    limits: TurnsSettings = USUAL_LIMITS,
    attachments: AttachmentSettings = USUAL_ATTACHMENTS,
) -> tuple[Message, ...]:
    """Return messages from text, mappings or messages, or from a single one of them. Bytes of a
    file become a data URL. Raises UsageError, also above `limits`: reading megabytes would delay
    every other turn."""
    raw: Any = {"role": "user", "content": messages} if isinstance(messages, str) else messages
    every = raw if isinstance(raw, (list, tuple)) else [raw]
    if len(every) > limits.messages:
        raise UsageError(
            f"the request has {len(every)} messages, more than the limit of {limits.messages}",
            hint="omit the oldest, or raise turns.messages in agent/agent.yml",
        )
    try:
        size = sum(map(_count_characters, every))
    except RecursionError:
        raise UsageError("the messages of the request are nested too deeply") from None
    if size > limits.characters:
        raise UsageError(
            f"the messages of the request have {size} characters, more than the limit of"
            f" {limits.characters}",
            hint="shorten them, or raise turns.characters in agent/agent.yml",
        )
    made = tuple(
        validated(Message, _without_bytes(message), f"messages[{index}]")
        for index, message in enumerate(every)
    )
    for index, message in enumerate(made):
        _check_files(message, index, attachments)
    return made


def _without_bytes(message: Any) -> Any:
    """Return a message with a data URL in place of the bytes of each file (`file_data`)."""
    content = message.get("content") if isinstance(message, Mapping) else None
    if not isinstance(content, (list, tuple)):
        return message
    return {**message, "content": [_part_without_bytes(part) for part in content]}


def _part_without_bytes(part: Any) -> Any:
    file = part.get("file") if isinstance(part, Mapping) else None
    if not isinstance(file, Mapping):
        return part
    data = file.get("file_data")
    if part.get("type") not in FILES or not isinstance(data, (bytes, bytearray)):
        return part
    url = data_url(bytes(data), str(file.get("media_type") or ""))
    return {**part, "file": {**file, "file_data": url}}


def _check_files(message: Message, index: int, limits: AttachmentSettings) -> None:
    """Raise UsageError for too many or too large files; base64 is a third longer than a file."""
    parts = message.content if isinstance(message.content, list) else ()
    files = []
    for part in parts:
        with suppress(UsageError):  # one that is malformed is a warning of the turn
            files += [file] if (file := attached_part(part)) else []
    if len(files) > limits.files:
        raise UsageError(
            f"messages[{index}] has {len(files)} files, more than the limit of {limits.files}",
            hint="attachments.files in agent/agent.yml",
        )
    for file in files:
        if len(file.data_url) * 3 / 4 > limits.file_mb * 1024 * 1024 + LONGEST_NAME:
            raise UsageError(
                f"messages[{index}]: the file {file.name!r} is larger than {limits.file_mb:g} MB",
                hint="attachments.file_mb in agent/agent.yml",
            )


def _count_characters(value: Any) -> int:
    """Return the characters of text in a message or a part of one, without those of images and
    files."""
    match value:
        case str():
            return len(value)
        case Message():
            return _count_characters(dict(value))
        case Mapping() if is_media(value):
            return 0
        case Mapping():
            return sum(map(_count_characters, value.values()))
        case list() | tuple():
            return sum(map(_count_characters, value))
    return 0


def validated(model: type[Any], raw: Any, path: str = "") -> Any:
    """Return a value of the model; `path` is its name in messages. Raises UsageError."""
    if isinstance(raw, model):
        return raw
    if not isinstance(raw, Mapping):
        raise UsageError(
            f"{path or model.__name__} must be a mapping, not {raw.__class__.__name__}"
        )
    try:
        value, unknown = validate_known(model, well_formed(raw))
    except RecursionError:
        raise UsageError(f"{path or model.__name__} is nested too deeply") from None
    except ValidationError as exc:
        step, message = validation_problems(exc)[0]
        where = ".".join(part for part in (path, dotted(step)) if part)
        raise UsageError(f"{where or model.__name__}: {message}") from None
    if unknown:
        raise UsageError(
            f"{path}{'.' if path else ''}{unknown[0].path}: unknown key", hint=unknown[0].hint
        )
    return value
