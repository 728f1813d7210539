"""The answer of a web host: bytes, text, JSON."""

from __future__ import annotations

import codecs
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from groundhook.core.json_text import NotJson, read_json

# Python codecs that are not encodings of the web; some take quadratic time.
_NOT_ON_THE_WEB = frozenset(
    {"idna", "punycode", "unicode-escape", "raw-unicode-escape", "utf-7", "undefined"}
)


@dataclass(frozen=True, kw_only=True)
class WebAnswer:
    """The answer of a host, of any status. `url` is the address after redirects; names of `headers`
    are in lower case, values of the same name joined by a comma; `body` is decompressed."""

    url: str
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def media_type(self) -> str:
        """The media type in lower case, without parameters; "" without one."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    @property
    def text(self) -> str:
        """The body decoded with its declared charset, else UTF-8; invalid bytes become U+FFFD."""
        try:
            return self.body.decode(self._codec(), "replace")
        except (LookupError, UnicodeError):
            return self.body.decode("utf-8", "replace")

    @property
    def value(self) -> Any:
        """The parsed body if its media type is JSON and it is valid; else its text."""
        if self.media_type != "application/json" and not self.media_type.endswith("+json"):
            return self.text
        try:
            return read_json(self.text)
        except NotJson:
            return self.text

    @property
    def charset(self) -> str:
        """The charset of the headers, or ""."""
        for parameter in self.headers.get("content-type", "").split(";")[1:]:
            name, _, value = parameter.partition("=")
            if name.strip().lower() == "charset":
                return value.strip().strip("\"'")
        return ""

    def _codec(self) -> str:
        codec = codecs.lookup(self.charset or "utf-8")
        return "utf-8" if codec.name.replace("_", "-") in _NOT_ON_THE_WEB else codec.name
