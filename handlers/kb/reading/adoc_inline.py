"""What a line of AsciiDoc shows: its attributes, links, references and quotes, as Markdown."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

_BUILT_IN = {
    **{"amp": "&", "apos": "'", "asterisk": "*", "backslash": "\\", "backtick": "`", "blank": ""},
    **{"caret": "^", "cpp": "C++", "deg": "°", "empty": "", "endsb": "]", "gt": ">", "ldquo": "“"},
    **{"lsquo": "‘", "lt": "<", "nbsp": " ", "plus": "+", "pp": "++", "quot": '"', "rdquo": "”"},
    **{"rsquo": "’", "sp": " ", "startsb": "[", "tilde": "~", "vbar": "|", "zwsp": ""},
}
_SPAN = re.compile(r"(?<!`)`\+?([^`\n]{1,500}?)\+?`(?!`)|``([^`\n]{1,500}+)``")
_NAMED = re.compile(r"(?<!\\)\{([\w-]{1,60}+)\}")
_PIECE = re.compile(
    r"(?P<macro>link|xref|mailto|footnote|footnoteref|kbd|btn|menu|image|icon|anchor|indexterm2?"
    r"|pass|stem|latexmath|asciimath):(?P<target>[^\s\[\]]{0,300}+)\[(?P<text>[^\]\n]{0,500}+)\]"
    r"|(?P<url>(?<!\\)https?://[^\s\[\]<>]{1,500}+)\[(?P<said>[^\]\n]{0,300}+)\]"
    r"|(?<!\\)<<(?P<id>[^<>,\n]{1,200}+)(?:,(?P<label>[^<>\n]{1,300}+))?>>"
    r"|\[\[[^\[\]\n]{1,200}+\]\]"
    r"|\[[.#%][\w.#%-]{1,60}+\](?=[_*]|\Z)"  # the role of a quote or of code
    r"|\(\(\([^()\n]{1,300}+\)\)\)"
    r"|\(\((?P<term>[^()\n]{1,300}+)\)\)"
    r"|(?:\[[^\[\]\n]{1,100}+\])?(?<![\w#])#(?P<marked>[^#\n]{1,300}+)#(?!\w)"
)
_BOLD = re.compile(r"(?<![\w*\\])\*(?=[^\s*])([^*\n]{1,500}+)(?<!\s)\*(?![\w*])")
_EMPHASIS = re.compile(r"(?<![\w_\\])_(?=[^\s_])([^_\n]{1,500}+)(?<!\s)_(?![\w_])")
_TWICE = re.compile(r"__([^_\n]{1,300}+)__")
_AS_WRITTEN = re.compile(r"(?<![\w+\\])\+(?=[^\s+])([^+\n]{1,300}+)(?<!\s)\+(?![\w+])")
_CODE_LABEL = re.compile(r"(?<!\\)<<[^<>,\n]{1,200}+,([^<>`\n]{0,200}+`[^<>\n]{1,300}+)>>")
_ESCAPED = re.compile(r"\\(?=https?://|<<|\[\[)")
_BREAK = re.compile(r"[ \t]\+\Z")
_CURLY = re.compile(r"\"`([^`\"\n]{1,300}+)`\"|'`([^`'\n]{1,300}+)`'")


def shown(text: str, attributes: Mapping[str, str]) -> str:
    """Return the text of a line as Markdown."""
    return _around_code(text, attributes, _marked)


def plain(text: str, attributes: Mapping[str, str]) -> str:
    """Return the text of a cell as Markdown, in one line."""
    return " ".join(shown(text, attributes).split())


def _around_code(
    text: str, attributes: Mapping[str, str], write: Callable[[str, Mapping[str, str]], str]
) -> str:
    """Return the text with code as it is, and what is between written by `write`."""
    text = _CURLY.sub(lambda found: f"“{found[1]}”" if found[1] else f"‘{found[2]}’", text)
    text = _CODE_LABEL.sub(r"\1", text)
    parts: list[str] = []
    reached = 0
    for found in _SPAN.finditer(text):
        code = _named(found[1] or found[2], attributes)
        parts += [write(text[reached : found.start()], attributes), f"`{code}`"]
        reached = found.end()
    return "".join([*parts, write(text[reached:], attributes)])


def _named(text: str, attributes: Mapping[str, str]) -> str:
    """Return the text with the values of its attributes; unknown ones stay as they are."""
    known = {**_BUILT_IN, **attributes}
    return _NAMED.sub(lambda found: known.get(found[1], found[0]), text).replace("\\{", "{")


def _marked(text: str, attributes: Mapping[str, str]) -> str:
    pieces = _PIECE.sub(_piece, _named(text, attributes))
    strong = _BOLD.sub(r"**\1**", pieces)
    words = _EMPHASIS.sub(r"*\1*", _TWICE.sub(r"*\1*", strong))
    words = _ESCAPED.sub("", words)
    return _BREAK.sub("  ", _AS_WRITTEN.sub(r"\1", words))


def _piece(found: re.Match[str]) -> str:
    if url := found["url"]:
        return _link(url, found["said"])
    if macro := found["macro"]:
        return _macro(macro, found["target"], found["text"])
    if found["id"]:
        return (found["label"] or found["id"]).strip()
    return found["term"] or found["marked"] or ""


def _macro(name: str, target: str, text: str) -> str:
    match name:
        case "link" | "mailto":
            return _link(target if name == "link" else f"mailto:{target}", text)
        case "xref":
            return text or target.partition("#")[2] or target
        case "footnote" | "footnoteref":
            return f" ({text})"
        case "menu":
            return " › ".join([target, *(each.strip() for each in text.split(">") if each.strip())])
        case "image":
            return text.partition(",")[0]
        case "icon" | "anchor" | "indexterm":
            return ""
    return text


def _link(url: str, text: str) -> str:
    said = text.strip().rstrip("^").strip('"')
    return f"[{said}]({url})" if said else url
