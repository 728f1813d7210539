"""Normalization of web addresses: canonical form, safe form for readers, and membership of sites.
Pure."""

from __future__ import annotations

import re
from contextlib import suppress
from urllib.parse import SplitResult, unquote, urlsplit

from groundhook.core.addresses import address

PORTS = {"http": 80, "https": 443}

# Parameters that track how a reader came to a page and do not identify it.
_TRACKING = re.compile(
    r"utm_\w+|mtm_\w+|pk_\w+|hsa_\w+|gclid|gclsrc|gbraid|wbraid|dclid|fbclid|msclkid|yclid|twclid|ttclid|igshid|igsh|"
    r"mc_cid|mc_eid|mkt_tok|_hsenc|_hsmi|_ga|_gl|oly_enc_id|oly_anon_id|vero_id|wickedid|srsltid|ref_src|ref_url|spm|s_cid|cmpid",
    re.I,
)
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")
_UNRESERVED = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~")
_WWW = re.compile(r"^(?:www\.+)+")
_NAME = re.compile(r"(?:[^\s/?#@\\%:\[\]<>^|]+|\[[0-9a-f:.%a-z]+\])(?::\d+)?")
# The fast path for most addresses: only `www.` and the last slash need to be removed. A tenth of
# the time.
_PLAIN = re.compile(
    r"(https?)://(?:www\.)*((?!www\.)[a-z0-9]+(?:[.-][a-z0-9]+)*)((?:/[A-Za-z0-9_.~-]+)*)/?",
    re.ASCII,
)
_PORT = re.compile(r":\d+$")
_BLANKS = re.compile(r"[\x00-\x20\x7f\ud800-\udfff]+")


def canonical(url: str) -> str:
    """Return the canonical form of a page's address, by which two results are the same page. It is
    for comparison, not for requests.

    Lower-case scheme and host, no user, no default port, no leading `www.`, no trailing slash, no
    tracking parameters, parameters in the order of their names, no fragment (except a route:
    `#!/page`, `#/page`), escapes normalized. Anything but an http(s) address is returned without
    its white space. canonical(canonical(url)) == canonical(url).
    """
    if plain := _PLAIN.fullmatch(url):
        return f"{plain[1]}://{plain[2]}{plain[3]}"
    text = _BLANKS.sub("", url)
    parts, host = _split(address(url) or address(text))
    if parts is None:
        return text
    path = _normalize_escapes(parts.path).rstrip("/")
    query = (
        "&".join(
            sorted(_drop_trackers(parts.query), key=lambda parameter: parameter.partition("=")[0])
        )
        if parts.query
        else ""
    )
    fragment = (
        parts.fragment if parts.fragment.startswith(("!", "/")) and parts.fragment != "/" else ""
    )
    query_part = f"?{_normalize_escapes(query)}" if query else ""
    return f"{parts.scheme}://{host}{path}{query_part}{f'#{fragment}' if fragment else ''}"


def followable(url: str) -> str:
    """Return the address as given, without tracking parameters; "" if it is not http(s)."""
    if _PLAIN.fullmatch(url):
        return url
    parts, _ = _split(address(url))
    if parts is None:
        return ""
    return (
        parts._replace(query="&".join(_drop_trackers(parts.query))) if parts.query else parts
    ).geturl()


def within(url: str, site: str) -> bool:
    """Return whether a page belongs to a site: a domain with its subdomains (`example.com`), or a
    path of one (`example.com/docs`); on any port, unless the site names one."""
    page, host = _split(canonical(url))
    wanted, domain = _split(canonical(f"https://{bare(site)}"))
    if page is None or wanted is None:
        return False
    if not _PORT.search(domain):
        host = _PORT.sub("", host)
    below = page.path == wanted.path or page.path.startswith(f"{wanted.path}/")
    return (host == domain or host.endswith(f".{domain}")) and below


def bare(site: str) -> str:
    """Return a site in the form for search operators: `https://www.example.com/docs/` →
    `example.com/docs`."""
    text = re.sub(
        r"^(?:site:)?(?:[a-z][a-z0-9+.-]*://)?(?:\*\.)?(?:www\.)?",
        "",
        _BLANKS.sub("", site),
        flags=re.I,
    )
    return text.partition("?")[0].partition("#")[0].rstrip("/")


def _split(url: str) -> tuple[SplitResult | None, str]:
    """Return the parts of an http(s) address and its normalized host, or None and "" if it is not
    http(s) or its host is invalid."""
    try:
        parts = urlsplit(url)
        host = _host(parts) if parts.scheme in PORTS else ""
    except ValueError:
        return None, ""
    return (parts, host) if _NAME.fullmatch(host) else (None, "")


def _host(parts: SplitResult) -> str:
    """Return the host, with the port unless it is the scheme's default. Raises ValueError for an
    invalid port."""
    host = _strip_www(parts.hostname or "")
    if not host.isascii():
        with suppress(UnicodeError):  # a name that cannot be encoded is compared as it is
            host = _strip_www(host.encode("idna").decode("ascii").lower())
    if ":" in host:
        host = f"[{host}]"
    port = parts.port
    return host if port in (None, PORTS[parts.scheme]) else f"{host}:{port}"


def _strip_www(host: str) -> str:
    host = host.strip(".")
    return _WWW.sub("", host) if host.startswith("www.") else host


def _drop_trackers(query: str) -> list[str]:
    parameters = [parameter for parameter in query.split("&") if parameter]
    return [
        parameter
        for parameter in parameters
        if not _TRACKING.fullmatch(unquote(parameter.partition("=")[0]))
    ]


def _normalize_escapes(text: str) -> str:
    """Normalize escapes: upper case, and unreserved characters decoded (RFC 3986, section
    6.2.2)."""

    def one_form(match: re.Match[str]) -> str:
        character = chr(int(match[1], 16))
        return character if character in _UNRESERVED else match[0].upper()

    return _ESCAPE.sub(one_form, text) if "%" in text else text
