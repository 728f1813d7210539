"""Who asks: keys, tokens of identity providers, headers of a proxy, cookies, nobody."""

from __future__ import annotations

import base64
import json
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import httpx
import jwt
import portalocker
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from groundhook.core.errors import ConfigError, StorageError
from groundhook.core.server_settings import ServerSettings
from groundhook.host.cli.main import run
from groundhook.host.server.asgi import check_settings
from groundhook.host.server.identity import tokens as tokens_module
from groundhook.host.server.identity.secret import FILE, Secret
from tests.server.conftest import LOCAL, OTHER, READER, Serve, Served, serving

ISSUER, AUDIENCE = "https://id.example", "groundhook"


@dataclass
class Provider:
    """An identity provider on loopback: its key set, and tokens."""

    url: str = ""
    keys: dict[str, ec.EllipticCurvePrivateKey] = field(default_factory=dict)
    fetched: int = 0
    down: bool = False

    def token(self, kid: str = "one", **changes: Any) -> str:
        claims = {
            "iss": ISSUER,
            "aud": AUDIENCE,
            "sub": "ada",
            "exp": int(time.time()) + 60,
            "org": {"id": "acme"},
        }
        claims = {key: value for key, value in {**claims, **changes}.items() if value is not None}
        return jwt.encode(claims, self.keys[kid], algorithm="ES256", headers={"kid": kid})

    def key_set(self) -> bytes:
        def number(value: int) -> str:
            return base64.urlsafe_b64encode(value.to_bytes(32, "big")).decode().rstrip("=")

        keys = []
        for kid, key in self.keys.items():
            at = key.public_key().public_numbers()
            keys.append(
                {"kty": "EC", "crv": "P-256", "kid": kid, "x": number(at.x), "y": number(at.y)}
            )
        return json.dumps({"keys": keys}).encode()


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    made = Provider(keys={"one": ec.generate_private_key(ec.SECP256R1())})

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            made.fetched += 1
            self.send_response(503 if made.down else 200)
            self.end_headers()
            self.wfile.write(made.key_set())

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        made.url = f"http://127.0.0.1:{server.server_address[1]}/keys"
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield made
        server.shutdown()
        thread.join()


def tokens(provider: Provider, **more: Any) -> dict[str, Any]:
    entry = {
        "issuer": ISSUER,
        "audience": AUDIENCE,
        "jwks_url": provider.url,
        "claims": {"user": "sub", "tenant": "org.id"},
        **more,
    }
    return {"jwt": [entry], "keys": [{"name": "other", "key": OTHER, "user": "other"}]}


def who(client: httpx.Client, **headers: str) -> Any:
    return client.get("/api/me", headers=headers).json()


@pytest.mark.parametrize("header", ["authorization", "x-api-key"])
def test_a_key_is_sent_as_a_bearer_or_as_some_clients_do(served: Served, header: str) -> None:
    with served.client("") as client:
        value = f"Bearer {OTHER}" if header == "authorization" else OTHER
        assert who(client, **{header: value})["user"] == "other"


def test_a_key_that_is_added_says_how_its_citations_are_written(
    filled: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    body = {"model": "tea", "messages": [{"role": "user", "content": "all teas"}]}
    with serving(shutil.copytree(filled, tmp_path / "app")) as served:
        at = ["--app", str(served.app)]
        texts: dict[str, str] = {}
        for style in ("links", "none"):
            assert run(["keys", "add", style, "--user", "bot", "--citations", style, *at]) == 0
            with served.client(capfd.readouterr().out.strip()) as client:
                for path in ("/v1/chat/completions", "/v1/responses"):
                    given = body if "chat" in path else {"model": "tea", "input": "all teas"}
                    texts[f"{style} {path}"] = client.post(path, json=given).text
        assert run(["keys", "add", "x", "--citations", "roman", *at]) == 2
    for asked, text in texts.items():
        assert ("[[1]](http" in text) == asked.startswith("links"), asked
        assert "[1] " not in text.replace("[[1]]", "")


def test_keys_are_added_listed_and_revoked_while_the_server_runs(
    serve: Serve, capfd: pytest.CaptureFixture[str]
) -> None:
    with serve() as served:
        at = ["--app", str(served.app)]
        assert run(["keys", "add", "ci", "--user", "bot", "--scope", "search", *at]) == 0
        shown = capfd.readouterr()
        key = shown.out.strip()
        assert "lacks the scopes chat, chats, author, kb, metrics" in shown.err
        with served.client(key) as client:
            with portalocker.Lock(served.app / ".groundhook/server-keys.lock"):
                assert who(client)["user"] == "bot"
            assert who(client)["scopes"] == ["search"]
            assert client.get("/api/assistants").status_code == 403
            assert run(["keys", "list", *at]) == 0
            listed = capfd.readouterr().out
            assert "ci" in listed
            assert run(["keys", "list", "--json", *at]) == 0
            today = datetime.now(UTC).date().isoformat()
            assert json.loads(capfd.readouterr().out)["used"] == today
            assert key.rpartition("_")[2] not in listed
            assert run(["keys", "add", "ci", *at]) == 1
            assert run(["keys", "revoke", "ci", *at]) == 0
            assert client.get("/api/me").status_code == 401
        assert run(["keys", "revoke", "ci", *at]) == 1
        assert run(["keys", "add", "a:b", "--acts-for", *at]) == 1
        assert "must not have a colon" in capfd.readouterr().err
        stored = served.app / ".groundhook/server-keys.json"
        assert stored.stat().st_mode & 0o077 == 0
        assert key not in stored.read_text(encoding="utf-8")


def test_a_key_may_be_limited_to_assistants(serve: Serve) -> None:
    keys = [{"name": "narrow", "key": OTHER, "assistants": ["tea"]}]
    with serve(auth={"keys": keys}) as served, served.client(OTHER) as client:
        listed = client.get("/api/assistants").json()["assistants"]
        assert [each["id"] for each in listed] == ["tea"]
        refused = client.post("/api/turns", json={"assistant": "late", "text": "?"})
        assert refused.status_code == 404


def test_a_key_that_acts_for_others_names_the_person_within_its_own_tenant(serve: Serve) -> None:
    keys = [
        {"name": "web", "key": OTHER, "tenant": "acme", "acts_for": True},
        {"name": "plain", "key": READER, "user": "reader"},
    ]
    with serve(auth={"keys": keys}) as served:
        with served.client(OTHER) as client:
            ada = who(client, **{"x-openwebui-user-id": "ada"})
            assert (ada["user"], ada["tenant"]) == ("web:ada", "acme")
            assert who(client)["user"] == ""
            for wrong in ("a" * 257, "a\tb"):
                sent = client.get("/api/me", headers={"x-groundhook-user": wrong})
                assert sent.status_code == 401
        with served.client(READER) as client:
            assert who(client, **{"x-openwebui-user-id": "ada"})["user"] == "reader"


def test_a_person_that_a_key_may_not_name_is_ignored_which_is_logged_once(
    serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    with serve() as served, served.client(OTHER) as client:
        for header in ("x-groundhook-user", "x-openwebui-user-id", "x-groundhook-team"):
            assert who(client, **{header: "ada"})["user"] == "other"
        assert who(client)["user"] == "other"
        assert "groundhook_ignored_users_total 3.0" in client.get("/metrics").text
    (reported,) = [each for each in caplog.messages if "is ignored" in each]
    assert "the key 'other' acts for nobody" in reported
    assert "x-groundhook-user" in reported
    assert "ada" not in reported


def test_with_a_secret_only_the_signed_token_of_open_webui_counts(serve: Serve) -> None:
    secret = "s" * 40
    keys = [{"name": "web", "key": OTHER, "acts_for": True, "jwt_secret": secret}]
    claims = {"sub": "ada", "iss": "open-webui", "exp": int(time.time()) + 60}
    signed = jwt.encode(claims, secret, algorithm="HS256")
    forged = jwt.encode(claims, "x" * 40, algorithm="HS256")
    with serve(auth={"keys": keys}) as served, served.client(OTHER) as client:
        assert who(client, **{"x-openwebui-user-jwt": signed})["user"] == "web:ada"
        for headers in ({"x-openwebui-user-id": "ada"}, {"x-openwebui-user-jwt": forged}):
            assert client.get("/api/me", headers=headers).status_code == 401


def test_the_body_names_a_person_only_where_headers_may_and_do_not(serve: Serve) -> None:
    secret = "s" * 40
    keys = [
        {"name": "plain", "key": READER, "acts_for": True},
        {"name": "signed", "key": OTHER, "acts_for": True, "jwt_secret": secret},
    ]
    claims = {"sub": "ada", "iss": "open-webui", "exp": int(time.time()) + 60}
    token = {"x-openwebui-user-jwt": jwt.encode(claims, secret, algorithm="HS256")}
    ada, bob = {"x-groundhook-user": "ada"}, {"x-groundhook-user": "bob"}
    body = {"model": "talks", "messages": [{"role": "user", "content": "?"}], "user": "bob"}

    def statuses(client: httpx.Client, asks: dict[str, str], *readers: dict[str, str]) -> list[int]:
        asked = client.post("/v1/chat/completions", json=body, headers=asks)
        turn = f"/api/turns/{asked.headers['x-groundhook-turn']}"
        return [client.get(turn, headers=reader).status_code for reader in readers]

    with serve(auth={"keys": keys}) as served:
        with served.client(READER) as client:
            assert statuses(client, {}, bob, ada) == [200, 404]
            assert statuses(client, ada, bob, ada) == [404, 200]
        with served.client(OTHER) as client:
            assert statuses(client, token, token, {}) == [200, 404]
            assert statuses(client, {}, token, {}) == [404, 200]


def test_a_token_of_the_provider_is_the_person_that_it_names(
    serve: Serve, provider: Provider
) -> None:
    with serve(auth=tokens(provider)) as served, served.client(provider.token()) as client:
        found = who(client)
        assert (found["user"], found["tenant"]) == ("ada", "acme")
        before = provider.fetched
        assert who(client)["user"] == "ada"
        assert provider.fetched == before
        assert who(client, authorization=f"Bearer {OTHER}")["user"] == "other"


def test_the_key_set_is_fetched_anew_for_a_new_key(serve: Serve, provider: Provider) -> None:
    with serve(auth=tokens(provider)) as served, served.client("") as client:
        provider.keys["two"] = ec.generate_private_key(ec.SECP256R1())
        token = provider.token("two")
        assert who(client, authorization=f"Bearer {token}")["user"] == "ada"
        del provider.keys["two"]


def test_tokens_cause_one_request_while_the_key_set_cannot_be_fetched(
    serve: Serve,
    provider: Provider,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(tokens_module, "SOON_S", 3600)
    monkeypatch.setattr(provider, "down", True)
    with serve(auth=tokens(provider)) as served, served.client(provider.token()) as client:
        before = provider.fetched
        assert [client.get("/api/me").status_code for _ in range(3)] == [401] * 3
        assert provider.fetched == before + 1
        assert f"the key set at {provider.url} cannot be used" in caplog.text
        monkeypatch.setattr(provider, "down", False)
        monkeypatch.setattr(tokens_module, "SOON_S", 0)
        assert who(client)["user"] == "ada"


def test_scopes_come_from_the_claim_that_is_named(serve: Serve, provider: Provider) -> None:
    auth = tokens(provider, claims={"scopes": "scope"})
    with serve(auth=auth) as served, served.client("") as client:
        token = provider.token(scope="search nonsense")
        assert who(client, authorization=f"Bearer {token}")["scopes"] == ["nonsense", "search"]
        assert (
            client.get("/api/assistants", headers={"authorization": f"Bearer {token}"}).status_code
            == 403
        )


def test_tokens_that_are_wrong_are_refused(serve: Serve, provider: Provider) -> None:
    public = provider.keys["one"].public_key()
    pem = public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    stranger = Provider(keys={"one": ec.generate_private_key(ec.SECP256R1())})
    none = jwt.encode({"iss": ISSUER, "aud": AUDIENCE, "sub": "ada", "exp": 2**33}, "", "none")
    head = base64.urlsafe_b64encode(b'{"alg":"HS256","typ":"JWT"}').decode().rstrip("=")
    body = provider.token().split(".")[1]
    import hashlib
    import hmac

    mac = hmac.digest(pem, f"{head}.{body}".encode(), hashlib.sha256)
    confused = f"{head}.{body}.{base64.urlsafe_b64encode(mac).decode().rstrip('=')}"
    wrong = [
        none,
        confused,
        provider.token(aud="another"),
        provider.token(iss="https://other.example"),
        provider.token(exp=None),
        provider.token(exp=int(time.time()) - 60),
        provider.token(sub=None),
        provider.token(nbf=int(time.time()) + 600),
        stranger.token(exp=int(time.time()) + 10**9),
        provider.token()[:-4] + "AAAA",
        "a.b.c",
        f"{head}.{body}.",
    ]
    for kid in ("../../etc/passwd", f"{provider.url}/evil", "x" * 9000):
        wrong.append(
            jwt.encode(
                {"iss": ISSUER, "aud": AUDIENCE, "sub": "ada", "exp": 2**33},
                stranger.keys["one"],
                algorithm="ES256",
                headers={"kid": kid, "jku": provider.url, "x5u": provider.url},
            )
        )
    with serve(auth=tokens(provider)) as served, served.client("") as client:
        for token in wrong:
            answer = client.get("/api/me", headers={"authorization": f"Bearer {token}"})
            assert answer.status_code == 401, token
            assert answer.headers["www-authenticate"] == "Bearer"


def test_headers_of_a_proxy_count_from_its_address_and_with_its_secret(serve: Serve) -> None:
    forwarded = {"addresses": ["127.0.0.0/8"], "secret": "proxy-secret", "tenant": "X-Org"}
    given = {"x-forwarded-user": "ada", "x-org": "acme", "x-forwarded-secret": "proxy-secret"}
    with serve(auth={"forwarded": forwarded}) as served, served.client("") as client:
        found = who(client, **given)
        assert (found["user"], found["tenant"]) == ("ada", "acme")
        without = {**given, "x-forwarded-secret": "guess"}
        assert client.get("/api/me", headers=without).status_code == 401
        doubled = [*given.items(), ("x-forwarded-user", "root")]
        assert client.get("/api/me", headers=doubled).status_code == 401
    web = {"name": "web", "key": OTHER, "acts_for": True}
    with (
        serve(auth={"forwarded": forwarded, "keys": [web]}) as served,
        served.client("") as client,
    ):
        theirs = client.get("/api/me", headers={**given, "x-forwarded-user": "web:ada"})
        assert theirs.status_code == 401
        assert who(client, **{**given, "x-forwarded-user": "website"})["user"] == "website"
    elsewhere = {"addresses": ["10.0.0.0/8"]}
    with serve(auth={"forwarded": elsewhere}) as served, served.client("") as client:
        assert client.get("/api/me", headers=given).status_code == 401


def test_a_cookie_stands_for_its_key_and_changes_something_from_our_pages_alone(
    serve: Serve,
) -> None:
    ask = {"assistant": "tea", "text": "all teas"}
    with serve() as served, served.client("") as client:
        signed_in = client.post("/api/session", json={"key": OTHER})
        cookie = signed_in.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=strict" in cookie
        assert who(client)["user"] == "other"
        same = {"sec-fetch-site": "same-origin"}
        assert client.post("/api/turns", json=ask, headers=same).status_code == 200
        origin = {"origin": served.url}
        assert client.post("/api/turns", json=ask, headers=origin).status_code == 200
        for headers in (
            {},
            {"sec-fetch-site": "cross-site"},
            {"sec-fetch-site": "same-site"},
            {"origin": "null"},
            {"origin": "https://evil.example"},
        ):
            refused = client.post("/api/turns", json=ask, headers=headers)
            assert (refused.status_code, refused.json()["code"]) == (403, "wrong_origin")
        (name,) = client.cookies
        assert name == f"gh_session_{served.url.rpartition(':')[2]}"  # of this port's server alone
        changed = client.cookies[name][:-3] + "AAA"
        client.cookies.clear()
        assert client.get("/api/me", headers={"cookie": f"{name}={changed}"}).status_code == 401
        assert client.post("/api/session", json={"key": "gh_wrong"}).status_code == 401


def test_over_https_a_cookie_is_taken_that_no_other_host_can_set(serve: Serve) -> None:
    with serve(public_url="https://tea.example") as served, served.client("") as client:
        given = client.post("/api/session", json={"key": OTHER}).headers["set-cookie"]
        assert given.startswith("__Host-gh_session=")
        assert "; Secure" in given
        value = given.partition("=")[2].partition(";")[0]
        client.cookies.clear()
        for name, status in (("__Host-gh_session", 200), ("gh_session", 401)):
            cookie = {"cookie": f"{name}={value}"}
            assert client.get("/api/me", headers=cookie).status_code == status


def test_nobody_may_ask_public_assistants_alone_and_comes_back_with_a_token(serve: Serve) -> None:
    with serve(auth={"anonymous": True}) as served, served.client("") as client:
        listed = client.get("/api/assistants").json()["assistants"]
        assert [each["id"] for each in listed] == ["late"]
        assert client.post("/api/turns", json={"assistant": "tea", "text": "?"}).status_code == 404
        assert client.post("/api/search", json={"type": "db", "query": "?"}).status_code == 403
        ask = {"assistant": "late", "text": "?"}
        with client.stream("POST", "/api/turns", json=ask) as answer:
            turn = answer.headers["x-groundhook-turn"]
            token = {"x-groundhook-resume": answer.headers["x-groundhook-resume"]}
            assert client.get(f"/api/turns/{turn}").status_code == 404
            assert client.get(f"/api/turns/{turn}", headers=token).status_code == 200
        assert client.get("/api/me", headers={"authorization": "Bearer x"}).status_code == 401


def test_two_visitors_of_one_address_never_share_a_turn_by_its_idempotency_key(
    serve: Serve,
) -> None:
    ask = {"assistant": "late", "text": "When?", "leaving": "continue"}
    headers = {"idempotency-key": "1"}
    with (
        serve(auth={"anonymous": True, "keys": []}) as served,
        served.client("") as one,
        served.client("") as other,
        one.stream("POST", "/api/turns", json=ask, headers=headers) as first,
        other.stream("POST", "/api/turns", json=ask, headers=headers) as second,
    ):
        for header in ("x-groundhook-turn", "x-groundhook-resume"):
            assert first.headers[header] != second.headers[header]
        changed = {**ask, "text": "Why?"}
        with other.stream("POST", "/api/turns", json=changed, headers=headers) as third:
            assert third.status_code == 200


def test_on_loopback_it_may_be_open(serve: Serve) -> None:
    with serve(auth={"local": "open"}) as served, served.client("") as client:
        assert who(client)["name"] == "local"
        assert who(client, authorization=f"Bearer {LOCAL}")["name"] == "local"


def test_only_names_of_the_server_and_pages_that_are_listed_are_answered(
    serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    settings = {"origins": ["https://app.example"], "hosts": ["groundhook.example"]}
    with serve(**settings) as served, served.client(OTHER) as client:
        assert client.get("/api/me", headers={"host": "groundhook.example:80"}).status_code == 200
        rebound = client.get("/api/me", headers={"host": "evil.example"})
        assert (rebound.status_code, rebound.json()["code"]) == (421, "wrong_host")
        assert client.get("/healthz", headers={"host": "10.1.2.3"}).status_code == 200
        name = "access-control-allow-origin"
        ours = client.get("/api/me", headers={"origin": "https://app.example"})
        assert ours.headers[name] == "https://app.example"
        for origin in ("null", "https://evil.example", "https://app.example.evil.example"):
            assert name not in client.get("/api/me", headers={"origin": origin}).headers
        asks = {"access-control-request-method": "POST"}
        for origin in (
            "https://app.example",
            "https://shop.example",
            "https://shop.example",
            "x y",
        ):
            client.options("/api/turns", headers={**asks, "origin": origin})
    (reported,) = [each for each in caplog.messages if "may not use this server" in each]
    assert "add 'https://shop.example' to server.origins" in reported


def test_behind_a_proxy_the_client_is_the_rightmost_address_that_is_none_of_them(
    serve: Serve,
) -> None:
    ask = {"assistant": "talks", "text": "?"}
    with serve(proxies=["127.0.0.0/8", "10.0.0.0/8"]) as served, served.client(OTHER) as client:
        headers = {
            "x-forwarded-for": "6.6.6.6, 203.0.113.9, 10.1.1.1",
            "accept": "application/json",
        }
        answer = client.post("/api/turns", json=ask, headers=headers).json()
    assert answer["metadata"]["client"]["ip"] == "203.0.113.9"


def test_users_of_two_issuers_and_of_a_key_that_acts_for_others_are_never_one(serve: Serve) -> None:
    secret = "s" * 40
    issuers = ("https://one.example", "https://two.example")
    web = {"name": "web", "key": OTHER, "acts_for": True}

    def user(count: int, issuer: str, sub: str) -> Any:
        entries = [{"issuer": each, "audience": "a", "secret": secret} for each in issuers[:count]]
        claims = {"sub": sub, "iss": issuer, "aud": "a", "exp": int(time.time()) + 60}
        token = jwt.encode(claims, secret, algorithm="HS256")
        with serve(auth={"jwt": entries, "keys": [web]}) as served, served.client(token) as client:
            return who(client).get("user")

    assert [user(2, each, "ada") for each in issuers] == [f"{each} ada" for each in issuers]
    assert user(1, issuers[0], "ada") == "ada"
    assert user(1, issuers[0], "web:ada") is None


def test_an_issuer_has_one_entry_that_may_accept_several_audiences(serve: Serve) -> None:
    secret, issuer = "s" * 40, "https://one.example"
    entry = {"issuer": issuer, "audience": ["api", "mcp"], "secret": secret}

    def token(audience: str) -> str:
        claims = {"sub": "ada", "iss": issuer, "aud": audience, "exp": int(time.time()) + 60}
        return jwt.encode(claims, secret, algorithm="HS256")

    with serve(auth={"jwt": [entry]}) as served:
        users = []
        for audience in ("api", "mcp", "other"):
            with served.client(token(audience)) as client:
                users.append(who(client).get("user"))
    assert users == ["ada", "ada", None]
    for entries, words in (
        ([entry, {**entry, "audience": "other"}], "several entries of the issuer"),
        ([{**entry, "audience": []}], "needs issuer and audience"),
        ([{**entry, "audience": ["api", ""]}], "needs issuer and audience"),
    ):
        with pytest.raises(ConfigError, match=words):
            check_settings(ServerSettings.model_validate({"auth": {"jwt": entries}}))


def test_an_mcp_client_without_a_key_is_led_to_the_public_address(serve: Serve) -> None:
    jwt = [{"issuer": "https://one.example", "audience": "mcp", "secret": "s" * 40}]
    with (
        serve(public_url="https://tea.example", auth={"jwt": jwt}) as served,
        served.client("") as client,
    ):
        refused = client.post("/mcp", json={}, headers={"host": "tea.example"})
        metadata = "https://tea.example/.well-known/oauth-protected-resource/mcp"
        assert f'resource_metadata="{metadata}"' in refused.headers["www-authenticate"]
        named = client.get("/.well-known/oauth-protected-resource/mcp").json()
        assert named["resource"] == "https://tea.example/mcp"
        assert named["authorization_servers"] == ["https://one.example"]


def test_an_mcp_client_is_not_led_to_a_sign_in_that_does_not_exist(serve: Serve) -> None:
    with serve() as served, served.client("") as client:
        refused = client.post("/mcp", json={})
        assert refused.status_code == 401
        assert "resource_metadata" not in refused.headers["www-authenticate"]
        assert client.get("/.well-known/oauth-protected-resource/mcp").status_code == 404
        refused = client.post("/register", json={"client_name": "an SDK with a provider"})
        assert refused.status_code == 404
        assert "Authorization: Bearer" in refused.json()["error_description"]


def test_an_author_whose_key_lists_assistants_sees_the_problems_of_these_alone(
    serve: Serve,
) -> None:
    scopes = ["chat", "author"]
    keys = [
        {"name": "all", "key": READER, "scopes": scopes},
        {"name": "narrow", "key": OTHER, "scopes": scopes, "assistants": ["tea.green"]},
    ]
    files = {
        "assistants/tea/package.yao": '{ "name": "Tea", "conector": "cites" }',
        "assistants/tea/green/package.yao": '{ "name": "Green", "conector": "cites" }',
        "connectors/broken.conn.yao": "{",
    }
    with serve(files, auth={"keys": keys}) as served:
        places = []
        for key in (READER, OTHER):
            with served.client(key) as client:
                problems = client.get("/api/check").json()["problems"]
            places.append({each["place"].partition(":")[0] for each in problems})
    everything, theirs = places
    assert theirs == {"assistants/tea/green/package.yao"}
    assert everything >= {*theirs, "assistants/tea/package.yao", "connectors/broken.conn.yao"}


def test_a_secret_that_was_cut_signs_nothing(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"")
    with pytest.raises(StorageError, match="0 bytes, not 32"):
        Secret(tmp_path).signature("session", "x")
