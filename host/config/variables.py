"""Variables in prompts: `$SYS.DATE`, `$CTX.LOCALE`, `{{ name }}` of the locales, `@assets/file.md`.

Assets are read with the prompts. The others are filled in each turn. Values from outside the
package cannot carry instructions: one that is more than a short name is written as a JSON string in
one line. A variable without a value stays as written; `groundhook check` warns of it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from groundhook.core.errors import ConfigError, Place, suggestion
from groundhook.core.problems import Problem
from groundhook.host.config.documents import ConfigDocument, read_document
from groundhook.host.config.locales import Texts

_MOMENT = {
    "DATETIME": "%Y-%m-%d %H:%M:%S",
    "DATE": "%Y-%m-%d",
    "TIME": "%H:%M:%S",
    "TIMEZONE": "%Z",
    "WEEKDAY": "%A",
    "YEAR": "%Y",
    "MONTH": "%m",
    "DAY": "%d",
    "HOUR": "%H",
    "MINUTE": "%M",
    "SECOND": "%S",
}
SYS = frozenset((*_MOMENT, "TIMESTAMP"))
CTX = frozenset(
    (
        "ASSISTANT_ID",
        "ASSISTANT_NAME",
        "ASSISTANT_DESCRIPTION",
        "CHAT_ID",
        "USER_ID",
        "TEAM_ID",
        "TENANT_ID",
        "LOCALE",
        "THEME",
        "ROUTE",
        "REFERER",
        "CLIENT_TYPE",
        "CLIENT_IP",
    )
)
OF_BOTH = frozenset(("DATETIME", "DATE", "TIME", "TIMEZONE"))  # $CTX.DATE is $SYS.DATE
METADATA = "METADATA."  # $CTX.METADATA.<key>: a text or a number of the request's metadata

_VARIABLE = re.compile(
    r"(?P<open>\{\{\s*)?\$(?P<group>SYS|CTX)\.(?P<name>(?i:METADATA)\.[\w-]+|[A-Za-z_]\w*)(?(open)\s*\}\})"
    r"|\{\{\s*(?P<text>[\w.-]+)\s*\}\}"
)
# What other systems fill, and this one does not: `${SYS.DATE}`, `$sys.date`, `{{ name | upper }}`,
# `{{#if name}}`.
_FOREIGN = re.compile(
    r"\$\{(?:SYS|CTX)\.[\w.]+\}|\$(?!SYS|CTX)(?i:sys|ctx)\.\w+"
    r"|(?P<text>\{\{\s*(?:[\w.-]+\s*\|[^{}\n]*|[#/^]\w+[^{}\n]*)\}\})"
)
_ASSET = re.compile(r"@assets/(?P<path>[\w./-]*\w)")
_NAME = re.compile(r"[\w.@:/+-]{0,64}")
LONGEST_VALUE = 200  # characters of a value from outside
LARGEST_ASSET = 1024 * 1024  # bytes


@dataclass(frozen=True)
class Values:
    """The values of the variables in one turn. `context` are those of `$CTX`, `texts` those of the
    locale."""

    now: datetime
    context: Mapping[str, Any]
    texts: Texts

    def fill(self, text: str) -> str:
        """Return a text with its variables replaced, each once: a value is never read again."""
        return _VARIABLE.sub(self._value, text) if "$" in text or "{{" in text else text

    def _value(self, match: re.Match[str]) -> str:
        if match["text"]:
            found = text_at(self.texts, match["text"])
            return match[0] if found is None else found
        name = _canonical_name(match["name"])
        if match["group"] == "SYS" or name in OF_BOTH:
            return _format_moment(self.now, name) or match[0]
        value = self.context.get(name)
        return match[0] if value is None else as_data(value)


def _canonical_name(name: str) -> str:
    """Return the name of a variable, which may be written in any case; keys of metadata keep
    theirs."""
    group, dot, key = name.partition(".")
    return f"{group.upper()}{dot}{key}"


def text_at(texts: Texts, key: str) -> str | None:
    """Return the text of a key, which may be dotted (`chat.title`, `chat.prompts.0`)."""
    value: Any = texts.get(key)
    if value is None:
        value = texts
        for step in key.split("."):
            if isinstance(value, list):
                place = int(step) if step.isdecimal() and len(step) < 10 else len(value)
                value = value[place] if place < len(value) else None
            else:
                value = value.get(step) if isinstance(value, Mapping) else None
    return str(value) if isinstance(value, (str, int, float)) else None


def as_data(value: Any) -> str:
    """Return a value from outside for a prompt: a short name as it is, anything else as a JSON
    string in one line, without invisible characters. A word joiner takes every tag apart, also
    those of the author's own prompt; nothing is escaped: a model repeats what it reads."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if _NAME.fullmatch(text):
        return text
    shown = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    cut = shown if len(shown) <= LONGEST_VALUE else f"{shown[:LONGEST_VALUE]}…"
    return json.dumps(cut, ensure_ascii=False).replace("<", "<\u2060")


def insert_assets(text: str, folder: Path) -> str:
    """Return a text with each `@assets/…` replaced by that file below `folder`; one that cannot be
    read stays as it is written."""

    def content(match: re.Match[str]) -> str:
        found = _read_asset(folder, match["path"])
        return match[0] if found is None else found

    return _ASSET.sub(content, text) if "@assets/" in text else text


def variables_in(text: str) -> list[str]:
    """Return the variables of a text as they are written, without assets."""
    return [match[0] for match in _VARIABLE.finditer(text)]


def find_unfilled(
    document: ConfigDocument,
    path: tuple[str | int, ...],
    folder: Path,
    locales: Mapping[str, Texts] | None,
) -> Iterator[Problem]:
    """Yield a warning, with its line, for each variable without a value in the texts below `path`
    of a document. `locales` are the texts by language; None: not known."""
    value = document.at(path)
    if isinstance(value, (dict, list)):
        steps = value if isinstance(value, dict) else range(len(value))
        for step in steps:
            yield from find_unfilled(document, (*path, step), folder, locales)
    if not isinstance(value, str):
        return
    for match in _VARIABLE.finditer(value):
        where, hint = _describe_missing(match, locales)
        if hint:
            place = document.place_of_match(path, match)
            yield Problem("warning", f"nothing fills {match[0]!r}{where}", place, hint)
    for match in _FOREIGN.finditer(value):
        if not match["text"] or locales is not None:
            place = document.place_of_match(path, match)
            hint = "write $SYS.NAME, $CTX.NAME, or {{ name }} for a text of the locales"
            yield Problem("warning", f"nothing fills {match[0]!r}", place, hint)
    for match in _ASSET.finditer(value):
        if _read_asset(folder, match["path"]) is None:
            place = document.place_of_match(path, match)
            message = f"there is no text file {match[0]!r}"
            yield Problem("warning", message, place, "assets/ is a folder of the package")


def _describe_missing(match: re.Match[str], locales: Mapping[str, Texts] | None) -> tuple[str, str]:
    """Return where a variable has no value, and a hint; ("", "") if it has one."""
    if match["text"]:
        return ("", "") if locales is None else _describe_missing_text(match["text"], locales)
    name = _canonical_name(match["name"])
    known = SYS if match["group"] == "SYS" else CTX | OF_BOTH
    if name in known or (match["group"] == "CTX" and name.startswith(METADATA)):
        return "", ""
    return "", suggestion(name, sorted(known))


def _describe_missing_text(key: str, locales: Mapping[str, Texts]) -> tuple[str, str]:
    lacking = [locale for locale, texts in locales.items() if text_at(texts, key) is None]
    if locales and not lacking:
        return "", ""
    if len(lacking) < len(locales):
        return f" in {', '.join(lacking)}", "a text of this name is in other locales only"
    names = {name for texts in locales.values() for name in _text_names(texts)}
    if key in names:
        return "", "its value in the locales is not a text"
    return "", suggestion(key, sorted(names)) if names else "the package has no locales"


def _text_names(texts: Texts, before: str = "") -> Iterator[str]:
    for key, value in texts.items():
        if isinstance(value, Mapping):
            yield from _text_names(value, f"{before}{key}.")
        else:
            yield f"{before}{key}"


def _format_moment(now: datetime, name: str) -> str:
    if name == "TIMESTAMP":
        return str(int(now.timestamp()))
    return now.strftime(_MOMENT[name]) if name in _MOMENT else ""


def _read_asset(folder: Path, name: str) -> str | None:
    root = folder.resolve() / "assets"
    path = (root / name).resolve()
    try:
        if not path.is_relative_to(root) or path.stat().st_size > LARGEST_ASSET:
            return None
        return path.read_text(encoding="utf-8-sig").rstrip("\n")
    except (OSError, UnicodeDecodeError, ValueError):
        return None


def texts_by_locale(folder: Path, inline: Mapping[str, Any]) -> dict[str, Texts]:
    """Return the texts of every locale below `folder` and of the key `locales` of a package."""
    made: dict[str, Texts] = {
        name: texts for name, texts in inline.items() if isinstance(texts, Mapping)
    }
    for path in sorted(folder.glob("*.yml")) if folder.is_dir() else ():
        try:
            own = read_document(path, Place(path.name).file).data
        except ConfigError:
            continue  # which the check of the locales reports
        made[path.stem] = {**made.get(path.stem, {}), **own}
    return made
