"""What hooks know from the web platform: URL, URLSearchParams, structuredClone. The table follows
the WHATWG URL standard."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urljoin, urlsplit

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from groundhook.core.errors import HookThrew
from tests.hooks.conftest import Hooks

# (input, base, what href is; None: it is no URL)
URLS: list[tuple[str, str | None, str | None]] = [
    ("https://example.org", None, "https://example.org/"),
    ("  HTTPS://EXAMPLE.org:443/a b?c d#e f\n", None, "https://example.org/a%20b?c%20d#e%20f"),
    ("http://h:80/", None, "http://h/"),
    ("http://h:0080/", None, "http://h/"),
    ("http://h:8080", None, "http://h:8080/"),
    ("http://h:", None, "http://h/"),
    ("http://h:65536", None, None),
    ("http://h:x", None, None),
    ("ht\ttp://e\nx/", None, "http://ex/"),
    ("http:\\\\h\\a\\b", None, "http://h/a/b"),
    ("http:////h/a", None, "http://h/a"),
    ("http://", None, None),
    ("http://u:p@w@h/", None, "http://u:p%40w@h/"),
    ("http://u@/", None, None),
    ("http://u:@h/", None, "http://u@h/"),
    ("http://h/a/./b/../c", None, "http://h/a/c"),
    ("http://h/a/%2E%2e/%2e/b", None, "http://h/b"),
    ("http://h/..", None, "http://h/"),
    ("http://h/a/..", None, "http://h/"),
    ("http://h/a/.", None, "http://h/a/"),
    ("http://h//a//", None, "http://h//a//"),
    ("http://h/'\"<>`{}^|", None, "http://h/'%22%3C%3E%60%7B%7D%5E|"),
    ("http://h/?'\"<>`{}", None, "http://h/?%27%22%3C%3E`{}"),
    ("http://h/#'\"<>`{}", None, "http://h/#'%22%3C%3E%60{}"),
    ("http://h/%zz%4", None, "http://h/%zz%4"),
    ("http://h/é😀\x7f\x01", None, "http://h/%C3%A9%F0%9F%98%80%7F"),
    ("http://münchen.de/", None, "http://xn--mnchen-3ya.de/"),
    ("http://MÜNCHEN.de/", None, "http://xn--mnchen-3ya.de/"),
    ("http://日本語.jp", None, "http://xn--wgv71a119e.jp/"),
    ("http://пример.испытание", None, "http://xn--e1afmkfd.xn--80akhbyknj4f/"),
    ("http://a。b．c", None, "http://a.b.c/"),
    ("http://soft\u00adhyphen.org", None, "http://softhyphen.org/"),
    ("http://%65xample.org", None, "http://example.org/"),
    ("http://a b/", None, None),
    ("http://a%00b/", None, None),
    ("http://a<b/", None, None),
    ("http://a|b/", None, None),
    ("http://%zz/", None, None),
    ("http://1.2.3.4/", None, "http://1.2.3.4/"),
    ("http://0x7f.1/", None, "http://127.0.0.1/"),
    ("http://0300.1/", None, "http://192.0.0.1/"),
    ("http://2130706433/", None, "http://127.0.0.1/"),
    ("http://1.2.3.4./", None, "http://1.2.3.4/"),
    ("http://256.1.1.1/", None, None),
    ("http://1.2.3.4.5/", None, None),
    ("http://1.2.3.08/", None, None),
    ("http://4294967296/", None, None),
    ("http://a.0x/", None, None),
    ("http://1.2.3.a/", None, "http://1.2.3.a/"),
    ("http://[::1]:80/", None, "http://[::1]/"),
    ("http://[1:0:0:2:0:0:0:3]/", None, "http://[1:0:0:2::3]/"),
    ("http://[0:0:1::]/", None, "http://[0:0:1::]/"),
    ("http://[::ffff:1.2.3.4]/", None, "http://[::ffff:102:304]/"),
    ("http://[1:2:3:4:5:6:7:8]/", None, "http://[1:2:3:4:5:6:7:8]/"),
    ("http://[1:2:3]/", None, None),
    ("http://[1::2::3]/", None, None),
    ("http://[::12345]/", None, None),
    ("http://[::1/", None, None),
    ("http://[::1]x/", None, None),
    ("a", None, None),
    ("", None, None),
    ("//h/a", None, None),
    ("1a:b", None, None),
    ("mailto:a@b.c?subject=x y", None, "mailto:a@b.c?subject=x%20y"),
    ("data:text/plain,a b#c", None, "data:text/plain,a b#c"),
    ("javascript:alert(1)", None, "javascript:alert(1)"),
    ("foo://H/a/../b", None, "foo://H/b"),
    ("foo://h:80/", None, "foo://h:80/"),
    ("foo:/a/b", None, "foo:/a/b"),
    ("foo:///a", None, "foo:///a"),
    ("foo://h", None, "foo://h"),
    ("foo:/.//a", None, "foo:/.//a"),
    ("foo://a b/", None, None),
    ("file:///a/b", None, "file:///a/b"),
    ("file:a", None, "file:///a"),
    ("file://localhost/a", None, "file:///a"),
    ("file://h/a", None, "file://h/a"),
    ("file:///C|/a/../..", None, "file:///C:/"),
    ("file:C:\\a", None, "file:///C:/a"),
    ("b", "http://h/a/c?q#f", "http://h/a/b"),
    ("../b", "http://h/a/c/d", "http://h/a/b"),
    ("/b", "http://u:p@h:81/a/c", "http://u:p@h:81/b"),
    ("//g/b", "http://u:p@h/a", "http://g/b"),
    ("\\\\g\\b", "http://h/a", "http://g/b"),
    ("?x", "http://h/a?q#f", "http://h/a?x"),
    ("#x", "http://h/a?q#f", "http://h/a?q#x"),
    ("", "http://h/a?q#f", "http://h/a?q"),
    ("http:b", "http://h/a/c", "http://h/a/b"),
    ("https:b", "http://h/a/c", "https://b/"),
    ("HTTP:/b", "http://h/a/c", "http://h/b"),
    ("b", "foo://h/a/c", "foo://h/a/b"),
    ("\\b", "foo://h/a/c", "foo://h/a/\\b"),
    ("b", "file:///C:/a", "file:///C:/b"),
    ("/b", "file:///C:/a", "file:///C:/b"),
    ("/D:/b", "file:///C:/a", "file:///D:/b"),
    ("#x", "mailto:a@b", "mailto:a@b#x"),
    ("b", "mailto:a@b", None),
    ("b", "nothing", None),
]

# (before, property, value, after)
CHANGES = [
    ("http://h/p", "protocol", "https", "https://h/p"),
    ("http://h:443/p", "protocol", "https:", "https://h/p"),
    ("http://h/p", "protocol", "foo", "http://h/p"),
    ("http://h/p", "username", "a b", "http://a%20b@h/p"),
    ("http://h/p", "password", "s:", "http://:s%3A@h/p"),
    ("mailto:a@b", "username", "u", "mailto:a@b"),
    ("http://h:1/p", "host", "g:2", "http://g:2/p"),
    ("http://h:1/p", "host", "g", "http://g:1/p"),
    ("http://h:1/p", "host", "g:99999", "http://g:1/p"),
    ("http://h/p", "host", "", "http://h/p"),
    ("http://h/p", "hostname", "g:2", "http://h/p"),
    ("http://h/p", "hostname", "[::1]", "http://[::1]/p"),
    ("http://h/p", "hostname", "a b", "http://h/p"),
    ("http://h/p", "hostname", "g/x?y", "http://g/p"),
    ("http://h/p", "port", "8080", "http://h:8080/p"),
    ("http://h/p", "port", "90x", "http://h:90/p"),
    ("http://h:1/p", "port", "", "http://h/p"),
    ("http://h:1/p", "port", "x", "http://h:1/p"),
    ("http://h/p?q", "pathname", "a/../b?c#d", "http://h/b%3Fc%23d?q"),
    ("http://h/p", "search", "a=b c", "http://h/p?a=b%20c"),
    ("http://h/p?q", "search", "", "http://h/p"),
    ("http://h/p", "hash", "#x y", "http://h/p#x%20y"),
    ("http://h/p#x", "hash", "", "http://h/p"),
    ("http://h/p", "href", "foo:bar", "foo:bar"),
]


async def test_urls_are_read_and_written_as_the_standard_says(hooks: Hooks) -> None:
    cases = json.dumps([[text, base] for text, base, _ in URLS])
    found = await hooks.value(
        f"{cases}.map(([text, base]) => URL.parse(text, base ?? undefined)?.href ?? null)"
    )
    assert [(text, base, href) for (text, base, _), href in zip(URLS, found, strict=True)] == URLS


async def test_a_url_that_was_written_is_read_as_itself(hooks: Hooks) -> None:
    hrefs = [href for _, _, href in URLS if href]
    assert await hooks.value(f"{json.dumps(hrefs)}.map((href) => new URL(href).href)") == hrefs


async def test_parts_of_a_url_can_be_read(hooks: Hooks) -> None:
    parts = [
        "href",
        "origin",
        "protocol",
        "username",
        "password",
        "host",
        "hostname",
        "port",
        "pathname",
        "search",
        "hash",
    ]
    found = await hooks.value(
        f"((u) => {parts}.map((part) => u[part]))(new URL('https://u:p@h.org:81/a/b?q=1#f'))"
    )
    assert found == [
        "https://u:p@h.org:81/a/b?q=1#f",
        "https://h.org:81",
        "https:",
        "u",
        "p",
        "h.org:81",
        "h.org",
        "81",
        "/a/b",
        "?q=1",
        "#f",
    ]
    assert await hooks.value(
        "[new URL('file:///a').origin, new URL('foo://h/').origin, String(new URL('foo:a'))]"
    ) == [
        "null",
        "null",
        "foo:a",
    ]
    assert await hooks.value("JSON.stringify({ u: new URL('http://h') })") == '{"u":"http://h/"}'


async def test_parts_of_a_url_can_be_changed(hooks: Hooks) -> None:
    cases = json.dumps(CHANGES)
    found = await hooks.value(
        f"{cases}.map(([before, part, value]) => {{ const u = new URL(before); u[part] = value;"
        " return u.href; })"
    )
    assert [(*case[:3], href) for case, href in zip(CHANGES, found, strict=True)] == CHANGES


async def test_an_invalid_url_throws_with_the_reason(hooks: Hooks) -> None:
    with pytest.raises(
        HookThrew, match=r"TypeError: Invalid URL: '/a' has no scheme and there is no base"
    ) as caught:
        await hooks.value("new URL('/a')")
    assert caught.value.place is not None
    with pytest.raises(
        HookThrew, match=r"Invalid URL: 'http://h:99999' has no port between 0 and 65535"
    ):
        await hooks.value("new URL('http://h:99999')")
    assert await hooks.value(
        "[URL.canParse('http://h'), URL.canParse('h'), URL.canParse('h', 'http://g')]"
    ) == [
        True,
        False,
        True,
    ]


async def test_search_parameters_and_their_url_are_one(hooks: Hooks) -> None:
    source = """(() => {
        const url = new URL("http://h/?a=1&b=2&a=3#f");
        const same = url.searchParams;
        same.append("c d", "é&=+");
        same.delete("a", "1");
        same.set("b", "9");
        const first = url.href;
        url.search = "?z=%20+";
        const second = [...same];
        same.delete("z");
        return [first, second, url.href];
    })()"""
    assert await hooks.value(source) == [
        "http://h/?b=9&a=3&c+d=%C3%A9%26%3D%2B#f",
        [["z", "  "]],
        "http://h/#f",
    ]


async def test_search_parameters_are_made_of_what_there_is(hooks: Hooks) -> None:
    made = await hooks.value(
        "[new URLSearchParams('?a=1&b'), new URLSearchParams({ a: 1, b: [2, 3] }), "
        "new URLSearchParams([['a', 'x'], ['a', 'y']]),"
        " new URLSearchParams(new Map([['k', 'v']])), "
        "new URLSearchParams(), new URLSearchParams(new URLSearchParams('a=b'))].map(String)"
    )
    assert made == ["a=1&b=", "a=1&b=2%2C3", "a=x&a=y", "k=v", "", "a=b"]
    expression = (
        "((p) => [p.get('a'), p.get('x'), p.getAll('a'), p.has('b'), p.has('b', '1'), p.size,"
        " [...p.keys()], [...p.values()]])"
    )
    assert await hooks.value(f"{expression}(new URLSearchParams('a=1&b=2&a=3'))") == [
        "1",
        None,
        ["1", "3"],
        True,
        False,
        3,
        ["a", "b", "a"],
        ["1", "2", "3"],
    ]
    sorted_ = (
        "((p) => { p.sort(); const seen = []; p.forEach((value, name) => seen.push(name + value));"
        " return seen; })"
    )
    assert await hooks.value(f"{sorted_}(new URLSearchParams('b=1&a=2&b=0'))") == ["a2", "b1", "b0"]


SAFE = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x2FF), max_size=12)


async def of(hooks: Hooks, expression: str, given: Any) -> Any:
    """What an expression of `given` is worth; the hook is the same for every `given`."""
    source = (
        "function Create(ctx: any, messages: any, { given }: any) { return { metadata: {"
        f" value: {expression} }} }}; }}"
    )
    returned = await hooks.create(source, options={"given": given})
    assert returned is not None
    assert returned.metadata is not None
    return returned.metadata["value"]


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pairs=st.lists(st.tuples(SAFE, SAFE), max_size=5))
async def test_search_parameters_agree_with_pythons(
    hooks: Hooks, pairs: list[tuple[str, str]]
) -> None:
    given = {"pairs": pairs, "text": urlencode(pairs)}
    written, read = await of(
        hooks,
        "[String(new URLSearchParams(given.pairs)), [...new URLSearchParams(given.text)]]",
        given,
    )
    assert parse_qsl(written, keep_blank_values=True) == pairs
    assert read == [list(pair) for pair in pairs]


NAMES = st.lists(st.sampled_from(["a", "bc", "d%20e", "x;y", "é"]), min_size=1, max_size=5)
STEPS = st.lists(st.sampled_from(["a", "..", ".", "b"]), max_size=4)


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(base=NAMES, steps=STEPS)
async def test_relative_paths_lead_where_pythons_lead(
    hooks: Hooks, base: list[str], steps: list[str]
) -> None:
    start, to = "http://h/" + "/".join(base), "/".join([*steps, "z"])
    found = await of(hooks, "new URL(given[0], given[1]).pathname", [to, start])
    assert found == quote(urlsplit(urljoin(start, to)).path, safe="/%;")


async def test_structured_clones_are_deep_and_keep_their_kinds(hooks: Hooks) -> None:
    source = """(() => {
        const inner = { n: 1 };
        const value: any = {
          inner, again: inner, list: [1, , 3], when: new Date(5), find: /a+/gi, map: new Map<any, any>([[inner, "x"]]),
          set: new Set([1, 2]), bytes: new Uint8Array([1, 2, 3]).subarray(1), big: 10n, none: undefined, nan: NaN,
          boxed: Object("s"), error: new RangeError("far", { cause: inner }),
        };
        value.me = value;
        const copy = structuredClone(value);
        inner.n = 2;
        return [
          copy !== value, copy.me === copy, copy.inner === copy.again, copy.inner.n, 1 in copy.list, copy.list.length,
          copy.when.getTime(), copy.when instanceof Date, String(copy.find), copy.map.get(copy.inner), copy.set.has(2),
          Array.from(copy.bytes), typeof copy.big, "none" in copy, Number.isNaN(copy.nan), copy.boxed instanceof String,
          copy.error instanceof RangeError, copy.error.message, copy.error.cause.n,
        ];
    })()"""
    assert await hooks.value(source) == [
        *(True, True, True, 1, False, 3),
        *(5, True, "/a+/gi", "x", True),
        *([2, 3], "bigint", True, True, True),
        *(True, "far", 1),
    ]


@pytest.mark.parametrize(
    "value", ["() => 1", "{ f() {} }", "Symbol('s')", "[Promise.resolve()]", "new WeakMap()"]
)
async def test_a_value_that_cannot_be_cloned_raises_an_error(hooks: Hooks, value: str) -> None:
    with pytest.raises(HookThrew, match=r"DataCloneError: .* could not be cloned"):
        await hooks.value(f"structuredClone({value})")


async def test_globals_of_the_platform_are_themselves_every_time_and_can_be_replaced(
    hooks: Hooks,
) -> None:
    assert await hooks.value("[URL === URL, typeof URLSearchParams, structuredClone.name]") == [
        True,
        "function",
        "structuredClone",
    ]
    assert await hooks.value("((globalThis as any).URL = 5, URL)") == 5


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=12,
)


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(value=JSON_VALUES)
async def test_any_json_is_cloned_as_it_is(hooks: Hooks, value: Any) -> None:
    assert await of(hooks, "structuredClone(given)", value) == value
