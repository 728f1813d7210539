"""Rows as CSV (RFC 4180), safe to open in a spreadsheet. Pure.

A text that a spreadsheet would compute (it begins with `=`, `+`, `-`, `@` or a control character,
and is no number) gets an apostrophe in front, which spreadsheets read as "this is text".
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from typing import Any

from groundhook.core.json_lines import as_json

_NUMBER = re.compile(r"[+-]?\d{1,400}(?:\.\d{1,400})?(?:[eE][+-]?\d{1,4})?")
# Also the wide forms, which some spreadsheets read as the narrow ones.
_COMPUTED = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def csv_text(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Return a head and rows as CSV. Lists and objects are written as JSON."""
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(map(cell, columns))
    writer.writerows(map(cell, row) for row in rows)
    return text.getvalue()


def cell(value: Any) -> str:
    """Return the text of one cell."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    text = value if isinstance(value, str) else as_json(value)
    text = text.replace("\0", "\ufffd")
    # A spreadsheet ignores blanks in front of a sign.
    first = text.lstrip(" ")[:1]
    is_computed = first in _COMPUTED and first and not _NUMBER.fullmatch(text)
    return f"'{text}" if is_computed else text
