"""Checks values of the right type that cannot work, so that they are reported with file and line
before the first turn. These checks need knowledge of the code that reads a setting: the supported
languages and databases, the settings that a reranker requires. Schemas check single values, and
`host.check.references` checks names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from groundhook.core.errors import ConfigError, UnknownName, suggestion
from groundhook.core.language.catalogue import language as named
from groundhook.core.language.catalogue import languages
from groundhook.core.problems import Problem, problems_of
from groundhook.core.types.base import dotted
from groundhook.core.types.model_spec import ModelSpec
from groundhook.core.types.serialisation import is_language_tag, no_language_tag
from groundhook.host.config.layers import Layer
from groundhook.host.config.locations import Path
from groundhook.host.config.package import Package
from groundhook.host.config.resolve import Resolved
from groundhook.host.config.validate import ValidDocument

_TAGS: tuple[Path, ...] = (("locale",), ("search", "web", "language"))
_SOURCES = {"kb": ("collections", "collection"), "db": ("models", "model")}
# A single word is more likely a company's name than a host name or a top-level domain of more than
# three letters.
_SITE = re.compile(
    r"\.?[\w-]+(\.[\w-]+)+\.?(:\d+)?|\.[\w-]+|[\w-]+(\.|\.?:\d+)|localhost|[a-z]{2,3}|\[[0-9a-f:.]+\](:\d+)?",
    re.IGNORECASE,
)
_ROW = re.compile(r"\bvalues\[(\d+)\]")
_OWN_HOST = ("endpoint", "tei")  # rerankers without a default address
# Deadlines of calls that a turn waits for, and their units in milliseconds.
_DEADLINES: dict[Path, int] = {
    ("options", "first_token_timeout"): 1000,
    ("options", "timeout"): 1000,
    ("timeout",): 1000,
    ("timeout_ms",): 1,
}
_TARGETS = {"agent": "an assistant's id", "mcp": "a server's name"}  # of rerankers of that type


def wrong_values(layer: Layer) -> Iterator[Problem]:
    """Yield the problems with one layer. Values of a wrong type, which the schema reports, and
    unset variables are skipped."""
    # Slow to import, and few commands check settings.
    from groundhook.handlers.db.question.vocabulary import languages as readable
    from groundhook.handlers.web.urls import bare

    for path in _TAGS:
        tag = _find_value(layer.data, path)
        if isinstance(tag, str) and tag and not is_language_tag(tag):
            yield Problem("warning", f"{dotted(path)!r}: {no_language_tag(tag)}", layer.place(path))
    for number, site in enumerate(_read_list(layer, path := ("search", "web", "exclude_sites"))):
        if isinstance(site, str) and not _SITE.fullmatch(bare(site).partition("/")[0]):
            message = f"'search.web.exclude_sites': {site!r} is not a site, so it excludes nothing"
            yield Problem(
                "warning",
                message,
                layer.place((*path, number)),
                "write example.com, or example.com/docs",
            )
    given = _find_value(layer.data, path := ("search", "query", "language"))
    among = _read_list(layer, path) or (given,)
    for language in among:
        if not isinstance(language, str) or language in ("auto", *readable()):
            continue
        hint = suggestion(language, ["auto", *readable()])
        yield Problem(
            "error",
            f"'search.query.language': questions in {language!r} cannot be read",
            layer.place(path),
            hint,
        )
    language = _find_value(layer.data, path := ("search", "keyword", "language"))
    if isinstance(language, str) and language != "auto" and named(language) is None:
        hint = suggestion(language, ["auto", *languages()])
        message = (
            f"'search.keyword.language': no words of {language!r} are known, so every question is"
            " searched for as it is"
        )
        yield Problem("warning", message, layer.place(path), hint)


def wrong_for_all(file: ValidDocument) -> Iterator[Problem]:
    """Yield the problems with the settings of the whole app in `agent/agent.yml`."""
    from groundhook.handlers.db.engines.engine import problem_of

    more = file.data.get("databases")
    names = more if isinstance(more, Mapping) else ()
    for path in (("database", "url"), *(("databases", name, "url") for name in names)):
        url = _find_value(file.data, path)
        if isinstance(url, str) and url and (wrong := problem_of(url)) is not None:
            message = f"{'.'.join(path)!r}: {wrong.message}"
            yield Problem("error", message, file.place(path), wrong.hint)
    server = file.data.get("qdrant")
    if isinstance(server, Mapping) and server and not server.get("url"):
        message = (
            "'qdrant' has no effect without 'qdrant.url': the embedded engine holds the vectors"
        )
        yield Problem(
            "warning",
            message,
            file.document.place(("qdrant",), of="key"),
            "set qdrant.url to the server's address",
        )


def wrong_deadlines(checked: ValidDocument, turn_ms: int) -> Iterator[Problem]:
    """Yield the deadlines of a connector, a server or an API that have no effect, since the turn
    ends before."""
    for path, unit in _DEADLINES.items():
        value = _find_value(checked.data, path)
        if isinstance(value, (int, float)) and value * unit > turn_ms:
            yield Problem(
                "warning",
                f"{dotted(path)!r}: {value:g} {'s' if unit > 1 else 'ms'} is longer than a turn,"
                f" which ends after {turn_ms / 1000:g} s",
                checked.place(path),
                "raise turn_timeout_ms in agent/agent.yml, or lower this",
            )


def wrong_rows(model: ModelSpec, checked: ValidDocument) -> Iterator[Problem]:
    """Yield the problems with a model's sample rows: values that its columns do not accept."""
    from groundhook.handlers.db.model.loading import rows_of

    try:
        rows_of(model, datetime.now(UTC))
    except ConfigError as exc:
        number = _ROW.search(exc.message)
        path: Path = ("values", int(number[1])) if number else ("values",)
        yield Problem("error", exc.message, checked.document.place(path), exc.hint)


def wrong_together(package: Package, resolved: Resolved) -> Iterator[Problem]:
    """Yield the problems with the resolved settings of an assistant, whichever layers set them."""
    yield from _check_preset(package, resolved)
    yield from _check_reranker(resolved)
    yield from _check_delegates(package, resolved)
    for source, (names, noun) in _SOURCES.items():
        section = getattr(resolved.settings.search, source)
        if section.enabled and not getattr(section, names):
            hint = f"name some with '{source}.{names}', or leave '{source}' out of 'search'"
            place = resolved.place("search", source, "enabled")
            yield Problem(
                "warning", f"'search.{source}' is on, but no {noun} is declared", place, hint
            )


def _check_preset(package: Package, resolved: Resolved) -> Iterator[Problem]:
    name = resolved.settings.prompt_preset
    if name and name not in package.presets:
        yield from problems_of(
            UnknownName(
                "prompt preset", name, package.presets, place=resolved.place("prompt_preset")
            )
        )


def _check_delegates(package: Package, resolved: Resolved) -> Iterator[Problem]:
    targets: dict[Path, str | None] = {
        ("uses", step): target for step, target in resolved.settings.uses.model_dump().items()
    }
    targets["search", "rerank", "agent"] = resolved.settings.search.rerank.agent
    for path, target in targets.items():
        origin = resolved.origins.get(tuple(map(str, path)))
        # Only for a setting of the assistant's own files: of an app-wide delegate this is expected.
        if target == package.id and origin is not None and origin.name == "assistant":
            message = (
                f"{dotted(path)!r} of {package.id!r} names {package.id!r} itself, which would call"
                " itself without end"
            )
            yield Problem(
                "warning",
                message,
                resolved.place(*map(str, path)),
                "name another assistant, or 'builtin'",
            )


def _check_reranker(resolved: Resolved) -> Iterator[Problem]:
    rerank = resolved.settings.search.rerank
    place = resolved.place("search", "rerank", "type") or resolved.place(
        "search", "rerank", "provider"
    )
    uses = resolved.settings.uses.rerank
    used = "mcp" if uses.startswith("mcp:") else "agent" if uses not in ("", "builtin") else ""
    if rerank.type in ("agent", "mcp") and not getattr(rerank, rerank.type) and rerank.type != used:
        message = (
            f"'search.rerank.type' is {rerank.type!r}, but 'search.rerank.{rerank.type}' is not set"
        )
        yield Problem("error", message, place, f"set it to {_TARGETS[rerank.type]}")
    if rerank.type == "model" and rerank.provider == "onnx" and not rerank.path:
        yield Problem(
            "error",
            "the rerank provider 'onnx' needs a folder",
            resolved.place("search", "rerank", "provider"),
            "set search.rerank.path",
        )
    if rerank.type == "model" and rerank.provider in _OWN_HOST and not rerank.host:
        message = f"the rerank provider {rerank.provider!r} needs an address"
        yield Problem(
            "error",
            message,
            resolved.place("search", "rerank", "provider"),
            "set search.rerank.host",
        )


def _read_list(layer: Layer, path: Path) -> Sequence[Any]:
    found = _find_value(layer.data, path)
    return found if isinstance(found, (list, tuple)) else ()


def _find_value(data: Mapping[str, Any], path: Path) -> Any:
    value: Any = data
    for step in path:
        value = value.get(step) if isinstance(value, Mapping) else None
    return value
