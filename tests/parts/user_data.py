"""Hooks that ask for the data of the user."""

from __future__ import annotations

from typing import Any


def asking(*sources: tuple[str, str], text: Any = "question") -> list[dict[str, Any]]:
    listed = [{"type": type, "name": name} for type, name in sources]
    return [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": text},
                {"type": "data", "data": {"sources": listed}},
            ],
        }
    ]
