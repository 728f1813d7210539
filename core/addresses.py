"""Checks and normalises the addresses of items. Pure.

Addresses come from untrusted places: front matter, cells of a table, feeds, search engines,
plug-ins. Clients make links of them, so `javascript:` and the like must never pass.
"""

from __future__ import annotations

import re
import unicodedata
from urllib.parse import quote, urlsplit

WEB = ("http", "https")
LOCAL = ("file",)  # documents added from this machine; never sent to readers outside

_PLAIN = re.compile(r"https?://[A-Za-z0-9.-]+(?::\d+)?(?:/[A-Za-z0-9_.~/-]*)?", re.ASCII)
_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_UNSAFE = re.compile(r"[\s\"'`<>()\[\]{}|\\^]")


def address(text: str, schemes: tuple[str, ...] = WEB) -> str:
    """Return the address in a form that clients may link to; "" without one of these schemes or
    without a host. Invisible characters and the user part (`user:password@`) are removed; blanks,
    brackets and quotes are percent-encoded. address(address(x)) == address(x)."""
    # A short way for most addresses.
    if _PLAIN.fullmatch(text):
        return text if "http" in schemes else ""
    text = "".join(c for c in text if unicodedata.category(c) not in _INVISIBLE).strip()
    try:
        parts = urlsplit(text)
        known, host, _ = parts.scheme in schemes, parts.hostname, parts.port
    except ValueError:
        return ""
    if not known or (parts.scheme in WEB and not host):
        return ""
    _, _, place = parts.netloc.rpartition("@")
    if _UNSAFE.search(place.partition("]")[2] if place.startswith("[") else place):
        return ""
    path, query, fragment = map(_encode, (parts.path, parts.query, parts.fragment))
    return parts._replace(netloc=place, path=path, query=query, fragment=fragment).geturl()


def shared(url: str) -> str:
    """Return the address as models and readers get it: "" for a file of this machine."""
    return "" if url.startswith("file:") else url


def _encode(text: str) -> str:
    return _UNSAFE.sub(lambda unsafe: quote(unsafe[0], safe=""), text)
