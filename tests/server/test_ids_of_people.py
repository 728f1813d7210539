"""Ids of people that headers, tokens and bodies name: what cannot be one is refused everywhere."""

from __future__ import annotations

import time
from typing import Any

import httpx
import jwt
import pytest

from tests.server.conftest import OTHER, READER, Serve

SECRET = "s" * 40
LATER = 4_000_000_000
NOBODY = (
    "{{LIBRECHAT_USER_ID}}",
    "${USER_ID}",
    "undefined",
    "null",
    "(null)",
    "NULL",
    "{http.auth.user.id}",
    "$remote_user",
    "$(user)",
    "%USER%",
    "<user>",
    "%s",
)
WRONG = ("", " ", "ada bell", "a\nb", "a\0b", "a\u200bb", "a\u202eb", "a" * 257, *NOBODY)
RIGHT = (
    "ada",
    "{3f2504e0-4f89-11d3-9a0c-0305e82c3301}",
    "auth0|7",
    "ada@acme.example",
    "a:b",
    "50%",
    "a$b",
)
KEYS = [
    {"name": "plain", "key": READER, "acts_for": True},
    {"name": "signed", "key": OTHER, "acts_for": True, "jwt_secret": SECRET},
]
ISSUER = {
    "issuer": "https://id.example",
    "audience": "groundhook",
    "secret": SECRET,
    "claims": {"user": "sub", "team": "team", "tenant": "org.id"},
}
FORWARDED = {"addresses": ["127.0.0.0/8"], "team": "X-Team", "tenant": "X-Org"}


def refused(answer: httpx.Response, name: str) -> bool:
    assert answer.status_code == 401, (answer.text, answer.request.headers)
    return name in str(answer.json()["detail"])


def issued(**claims: Any) -> dict[str, str]:
    whole = {"iss": "https://id.example", "aud": "groundhook", "exp": LATER, "sub": "ada", **claims}
    return {"authorization": f"Bearer {jwt.encode(whole, SECRET, algorithm='HS256')}"}


def test_a_header_that_names_nobody_is_refused_with_its_name(serve: Serve) -> None:
    with serve(auth={"keys": KEYS}) as served, served.client(READER) as client:
        for header in ("x-groundhook-user", "x-openwebui-user-id"):
            for wrong in (*NOBODY, "", "ada bell", "a\tb", "a\u200bb", "a" * 257):
                sent = client.get("/api/me", headers={header.encode(): wrong.encode()})
                assert refused(sent, header), wrong
        for right in RIGHT:
            sent = client.get("/api/me", headers={"x-groundhook-user": right})
            assert sent.json()["user"] == f"plain:{right}"
        team = {"x-groundhook-user": "ada", "x-groundhook-team": "{{TEAM}}"}
        assert refused(client.get("/api/me", headers=team), "x-groundhook-team")


def test_a_name_in_utf_8_is_read_as_it_was_written(serve: Serve) -> None:
    with serve(auth={"keys": KEYS}) as served, served.client(READER) as client:
        sent = client.get("/api/me", headers={b"x-groundhook-user": "Zoë".encode()})
        assert sent.json()["user"] == "plain:Zoë"


def test_a_body_that_names_nobody_is_refused(serve: Serve) -> None:
    with serve(auth={"keys": KEYS}) as served, served.client(READER) as client:
        for wrong in (*NOBODY, " ", "ada bell", "a\u202eb"):
            body = {"model": "talks", "messages": [{"role": "user", "content": "?"}], "user": wrong}
            sent = client.post("/v1/chat/completions", json=body)
            assert sent.status_code == 401, wrong
            assert "`user` of the body" in sent.json()["error"]["message"]


@pytest.mark.parametrize("user", WRONG)
def test_a_signed_token_of_open_webui_that_names_nobody_is_refused(serve: Serve, user: str) -> None:
    claims = {"sub": user, "iss": "open-webui", "exp": int(time.time()) + 60}
    signed = {"x-openwebui-user-jwt": jwt.encode(claims, SECRET, algorithm="HS256")}
    with serve(auth={"keys": KEYS}) as served, served.client(OTHER) as client:
        assert refused(client.get("/api/me", headers=signed), "the claim 'sub'")


def test_a_token_of_an_issuer_that_names_nobody_is_refused_with_the_claim(serve: Serve) -> None:
    with serve(auth={"jwt": [ISSUER]}) as served, served.client("") as client:
        for wrong in WRONG:
            assert refused(client.get("/api/me", headers=issued(sub=wrong)), "the claim 'sub'")
        for claim, given in (
            ("team", {"team": "undefined"}),
            ("org.id", {"org": {"id": "{{ORG}}"}}),
            ("org.id", {"org": {"id": "acme "}}),
        ):
            assert refused(client.get("/api/me", headers=issued(**given)), f"the claim '{claim}'")
        found = client.get("/api/me", headers=issued(org={"id": "Acme Corp"})).json()
        assert (found["user"], found["tenant"]) == ("ada", "Acme Corp")


def test_headers_of_a_proxy_that_name_nobody_are_refused_with_their_name(serve: Serve) -> None:
    with serve(auth={"forwarded": FORWARDED}) as served, served.client("") as client:
        for wrong in (*NOBODY, "", "a" * 257):
            sent = client.get("/api/me", headers={"x-forwarded-user": wrong})
            assert refused(sent, "X-Forwarded-User"), wrong
        org = {"x-forwarded-user": "ada", "x-org": "null"}
        assert refused(client.get("/api/me", headers=org), "X-Org")
