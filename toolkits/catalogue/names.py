"""Names that people write in many ways: formats of files, organizations, tags. Pure."""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import SplitResult, urlsplit

from groundhook.core.unseen import clean

# Spellings → the format, as `format_key` returns it. Spellings are small, without a leading dot.
_SPELLINGS: dict[str, tuple[str, ...]] = {
    "csv": ("text/csv", "application/csv", "text/comma-separated-values", "comma separated values"),
    "tsv": ("text/tab-separated-values", "tab"),
    "xls": ("application/vnd.ms-excel", "excel", "ms excel", "microsoft excel"),
    "xlsx": (
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        "excel (xlsx)",
        "excel 2007",
    ),
    "ods": ("application/vnd.oasis.opendocument.spreadsheet", "opendocument spreadsheet"),
    "doc": ("application/msword", "word", "ms word"),
    "docx": ("application/vnd.openxmlformats-officedocument.wordprocessingml.document",),
    "pdf": ("application/pdf", "application/x-pdf", "acrobat"),
    "json": ("application/json", "text/json"),
    "jsonl": ("ndjson", "json lines", "application/x-ndjson", "application/jsonl"),
    "geojson": ("application/geo+json", "application/vnd.geo+json", "geo json", "geo-json"),
    "xml": ("application/xml", "text/xml"),
    "rdf": ("application/rdf+xml", "rdf/xml", "rdf+xml"),
    "ttl": ("turtle", "text/turtle"),
    "html": ("text/html", "htm", "web page", "website"),
    "txt": ("text/plain", "text", "plain text"),
    "kml": ("application/vnd.google-earth.kml+xml",),
    "kmz": ("application/vnd.google-earth.kmz",),
    "gml": ("application/gml+xml",),
    "gpkg": ("application/geopackage+sqlite3", "geopackage"),
    "shp": ("shapefile", "shape", "esri shapefile", "esri shape file", "shape file", "x-shapefile"),
    "wms": ("ogc wms", "web map service"),
    "wfs": ("ogc wfs", "web feature service"),
    "zip": ("application/zip", "application/x-zip-compressed"),
    "parquet": ("application/vnd.apache.parquet", "apache parquet"),
    "api": ("rest api", "web service"),
}
_FORMATS = {
    spelling: key for key, spellings in _SPELLINGS.items() for spelling in (key, *spellings)
}
# Names of several formats.
_EXCEL, _SPREADSHEET = ("xls", "xlsx"), ("xls", "xlsx", "ods")
_FAMILIES = {
    **dict.fromkeys(("excel", "ms excel", "microsoft excel"), _EXCEL),
    **dict.fromkeys(("spreadsheet", "spreadsheets"), _SPREADSHEET),
}
# Words that mean something else more often than a format.
_NOT_IN_QUESTIONS = {"text", "tab", "word", "shape", "zip", "website", "web page", "doc", "txt"}
# The longest first: "geo json" is one name.
_ASKED = {
    re.compile(rf"(?<![\w.-]){re.escape(spelling)}(?![\w-])", re.IGNORECASE): set(
        _FAMILIES.get(spelling) or [_FORMATS[spelling]]
    )
    for spelling in sorted({*_FORMATS, *_FAMILIES}, key=lambda spelling: (-len(spelling), spelling))
    if "/" not in spelling and spelling not in _NOT_IN_QUESTIONS
}
_BLANKS = re.compile(r"\s+")
_WORD = re.compile(r"[^\W_]+")
_SHORTEST_PREFIX = 3  # letters


def key(text: str) -> str:
    """Return a name for comparison, without differences of case, blanks and width, and without
    unseen characters."""
    folded = unicodedata.normalize("NFKC", clean(text)).casefold()
    return _BLANKS.sub(" ", folded).strip()


def keys(texts: Iterable[Any]) -> list[str]:
    """Return the distinct keys of names, without empty ones."""
    return list(dict.fromkeys(found for text in texts if (found := key(str(text or "")))))


def format_key(text: str) -> str:
    """Return a format for comparison: `text/csv`, `.csv` and `CSV ` are `csv`; an unknown one stays
    as it is."""
    plain = key(text).lstrip(".").partition(";")[0].strip()
    plain = plain.removeprefix("https://publications.europa.eu/resource/authority/file-type/")
    plain = plain.removeprefix("http://publications.europa.eu/resource/authority/file-type/")
    plain = plain.removeprefix("https://www.iana.org/assignments/media-types/")
    return _FORMATS.get(plain, plain)


def format_keys(text: str) -> tuple[str, ...]:
    """Return the formats of a name for comparison: `excel` is `xls` and `xlsx`."""
    return _FAMILIES.get(key(text)) or (format_key(text),)


def nearest(wanted: str, known: Iterable[str]) -> str:
    """Return the known name that is meant by an unknown one, all as `key` returns them: one that
    begins with it, one that has all of its words or only words of it, or one of nearly the same
    letters; "" if there is none."""
    wanted = wanted[:100]
    names = sorted(known, key=lambda name: (len(name), name))
    if len(wanted) >= _SHORTEST_PREFIX:
        begins = next((name for name in names if name.startswith(wanted)), "")
        if begins:
            return begins
    words = set(_WORD.findall(wanted))
    alike = [
        name
        for name in names
        if (own := set(_WORD.findall(name))) and words and (words <= own or own <= words)
    ]
    if alike:
        return max(alike, key=lambda name: len(words & set(_WORD.findall(name))))
    return next(iter(difflib.get_close_matches(wanted, names, n=1, cutoff=0.6)), "")


def format_of(resource: dict[str, Any]) -> str:
    """Return the format of a resource in capitals, as portals show it: as declared, else by its
    media type or its address; "" if nothing says it."""
    for name in ("format", "mimetype", "mimetype_inner"):
        if found := format_key(str(resource.get(name) or "")):
            return found.upper()
    ending = parts_of(str(resource.get("url") or "")).path.rpartition("/")[2].rpartition(".")[2]
    return _FORMATS[ending.lower()].upper() if ending.lower() in _FORMATS else ""


def entries(package: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    """Return the objects of a list in a package; none where the portal has no list of that name."""
    found = package.get(name)
    return [each for each in found if isinstance(each, Mapping)] if isinstance(found, list) else []


def parts_of(address: str) -> SplitResult:
    """Return the parts of an address; empty ones for what cannot be an address, since publishers
    write anything."""
    try:
        return urlsplit(address)
    except ValueError:
        return urlsplit("")


def formats_in(question: str) -> tuple[set[str], str]:
    """Return the formats that a question names, and the question without their names: {`csv`} and
    "files about schools" of "CSV files about schools". A question of nothing else keeps them."""
    found: set[str] = set()
    rest = question
    for pattern, formats in _ASKED.items():
        if pattern.search(rest):
            found |= formats
            rest = pattern.sub(" ", rest)
    rest = _BLANKS.sub(" ", rest).strip()
    return found, rest if any(map(str.isalpha, rest)) else question
