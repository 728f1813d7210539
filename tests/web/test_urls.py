"""Normalization of web addresses: spellings of one page have one canonical form."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundhook.handlers.web.urls import bare, canonical, followable, within


@pytest.mark.parametrize(
    "url",
    [
        "https://example.com/a",
        "https://www.example.com/a/",
        "HTTPS://Example.COM:443/a#section",
        "https://example.com/a?utm_source=x&fbclid=y",
        "https://user:secret@example.com./%61?gclid=1",
        " https://example.com/a\n",
    ],
)
def test_spellings_of_one_page_have_one_canonical_form(url: str) -> None:
    assert canonical(url) == "https://example.com/a"


@pytest.mark.parametrize(
    ("url", "same"),
    [
        ("http://example.com:80/", "http://example.com"),
        ("http://example.com:8080/", "http://example.com:8080"),
        ("https://example.com/?b=2&a=1&a=0", "https://example.com?a=1&a=0&b=2"),
        ("https://app.example.com/#/route", "https://app.example.com#/route"),
        ("https://bücher.de/", "https://xn--bcher-kva.de"),
        ("https://[2001:DB8::1]:443/x", "https://[2001:db8::1]/x"),
        ("https://example.com/%d7%a9", "https://example.com/%D7%A9"),
        ("https://www.www.example.com", "https://example.com"),
        ("no address", "noaddress"),
        ("https://[broken", "https://[broken"),
    ],
)
def test_parts_that_identify_a_page_are_kept(url: str, same: str) -> None:
    assert canonical(url) == same


SCRAP = st.text(st.sampled_from(list("aB1./?&=#%:@[]!é_- ")), max_size=12)
URLS = st.one_of(
    st.text(),
    st.builds("https://{}{}".format, SCRAP, SCRAP),
    st.builds("http://www.{}.com:80/{}?utm_x=1&{}#{}".format, SCRAP, SCRAP, SCRAP, SCRAP),
)


@given(URLS)
def test_a_canonical_address_is_its_own_canonical_address(url: str) -> None:
    once = canonical(url)
    assert canonical(once) == once


@given(URLS)
def test_a_followable_address_is_http_and_the_same_page_or_nothing(url: str) -> None:
    shown = followable(url)
    assert shown == "" or shown.lower().startswith(("http://", "https://"))
    assert shown == "" or canonical(shown) == canonical(url)


def test_an_address_with_another_scheme_is_not_followable() -> None:
    assert (
        followable("javascript:alert(1)")
        == followable("data:text/html,x")
        == followable("https:///x")
        == ""
    )
    assert (
        followable("https://www.example.com/a?id=1&utm_medium=mail#top")
        == "https://www.example.com/a?id=1#top"
    )


def test_sites_contain_their_subdomains_and_paths() -> None:
    assert bare("https://www.Example.com/docs/") == "Example.com/docs"
    assert within("https://docs.example.com/x", "example.com")
    assert within("https://www.example.com/docs/x", "https://example.com/docs/")
    assert within("http://docs.example.com:8080/docs", "example.com/docs")
    assert within("http://[::1]:8080/", "[::1]")
    assert within("https://example.com:8443/", "example.com:8443")
    assert not within("https://example.com/", "example.com:8443")
    assert not within("https://notexample.com/", "example.com")
    assert not within("https://example.com/documents", "example.com/docs")


@given(URLS)
def test_tracking_parameters_do_not_change_the_canonical_form(url: str) -> None:
    url = url.strip()  # a blank at the end would be inside once something follows
    if followable(url) and not {"?", "#"} & set(url):
        assert canonical(f"{url}?utm_source=x") == canonical(url)
        assert canonical(followable(f"{url}?utm_source=x")) == canonical(url)
