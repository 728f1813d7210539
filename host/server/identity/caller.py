"""Identifies the caller of a request. This is the only module that makes a `Caller`.

The first way to sign in that a request uses decides. If its key, token or cookie is wrong, the
answer is 401, and no other way is tried.
"""

from __future__ import annotations

import hmac
import logging
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from hashlib import sha256
from urllib.parse import urlsplit

from starlette.requests import Request

from groundhook.core.server_settings import (
    READER_SCOPES,
    AuthSettings,
    CitationStyle,
    ForwardedSettings,
    ServerScope,
)
from groundhook.core.types.chats import ChatOwner
from groundhook.core.types.turn import Identity
from groundhook.host.server.identity import person_ids
from groundhook.host.server.identity.client_addresses import network, within
from groundhook.host.server.identity.keys import Key, Keyring
from groundhook.host.server.identity.sessions import Sessions
from groundhook.host.server.identity.tokens import Tokens, signed_user
from groundhook.host.server.problems import Refused

log = logging.getLogger("groundhook.server")

ALL_SCOPES: tuple[ServerScope, ...] = (
    "chat",
    "search",
    "chats",
    "author",
    "kb",
    "metrics",
    "admin",
)
NO_KEY = "none"  # of clients that cannot send a request without a key
USER_HEADERS = ("x-groundhook-user", "x-openwebui-user-id")  # the first of them counts
TEAM_HEADER = "x-groundhook-team"
ACTING_HEADERS = (*USER_HEADERS, TEAM_HEADER)
_JWT = re.compile(r"[\w-]+\.[\w-]+\.[\w-]*")


@dataclass(frozen=True, kw_only=True)
class Caller:
    """The person or program behind a request. `name` is for logs and limits; `assistants` are those
    that may be used (None: all that are offered). `acts_for`: the body may name the person.
    `spoken_for`: a program or a proxy named the person, so the address is not the person's."""

    identity: Identity
    name: str
    scopes: frozenset[str]
    assistants: tuple[str, ...] | None = None
    acts_for: bool = False
    client: str = ""
    citations: CitationStyle | None = None
    anonymous: bool = False
    spoken_for: bool = False

    @property
    def reaches_all(self) -> bool:
        """Whether the caller may read everything of the app: an author whose key lists no
        assistants."""
        return "author" in self.scopes and self.assistants is None

    @property
    def owner(self) -> str:
        """The owner of the turns, limits and idempotency keys of this caller."""
        identity = self.identity
        if identity.user_id:
            return f"user:{identity.tenant_id}\0{identity.user_id}"
        return f"key:{self.name}"

    def stored_owner(self, token: str) -> ChatOwner:
        """Return the owner of this caller's turns in the store. An anonymous caller owns a turn by
        its token alone."""
        if self.identity.user_id:
            return ChatOwner.of(self.identity)
        held_by = f"token:{sha256(token.encode()).hexdigest()}" if self.anonymous else self.owner
        return ChatOwner(program=held_by)


class SignIn:
    """The ways to sign in that a server has."""

    def __init__(
        self,
        settings: AuthSettings,
        keys: Keyring,
        tokens: Tokens,
        sessions: Sessions,
        local: bool,
        on_ignored_user: Callable[[], None],
    ) -> None:
        self._settings, self._keys, self._tokens = settings, keys, tokens
        self._sessions, self._on_ignored_user = sessions, on_ignored_user
        self._reported: set[str] = set()  # names of keys
        self._open = local and settings.local == "open"

    async def caller(self, request: Request, address: str) -> Caller:
        """Return the caller of a request from an address. Raises Refused."""
        given = _credentials(request)
        if given is not None:
            if _JWT.fullmatch(given):
                return await self._by_token(given)
            return self._by_key(given, request)
        forwarded = self._settings.forwarded
        if forwarded is not None and forwarded.user.lower() in request.headers:
            caller = _by_headers(forwarded, request)
            self._refuse_reserved_user(caller.identity.user_id, forwarded.user)
            return caller
        if self._sessions.cookie(request) in request.cookies:
            return self._by_cookie(request)
        if self._open:
            return _local()
        if self._settings.anonymous:
            return _anonymous(address)
        raise Refused(
            "unauthenticated",
            "this needs a key",
            hint="send `Authorization: Bearer …`; `groundhook keys add` makes one",
        )

    def _by_key(self, given: str, request: Request) -> Caller:
        key = self._keys.find(given)
        if key is None:
            raise Refused("unauthenticated", "the key is not valid")
        caller = of_key(key)
        if key.acts_for:
            return _acting(caller, key, request)
        if ignored := [name for name in ACTING_HEADERS if name in request.headers]:
            self._report(key.name, ignored[0])
        return caller

    def _report(self, key: str, header: str) -> None:
        """Count a request that names a person in vain; the first of each key is logged."""
        self._on_ignored_user()
        if key not in self._reported:
            self._reported.add(key)
            log.warning(
                "the key %r acts for nobody, so the header %s of its requests is ignored"
                " (server.auth.keys: acts_for; groundhook keys add --acts-for)",
                key,
                header,
            )

    async def _by_token(self, given: str) -> Caller:
        identity, scopes, issuer = await self._tokens.read(given)
        self._refuse_reserved_user(identity.user_id, "the token's user")
        name = f"{issuer}:{identity.user_id}"
        return Caller(identity=identity, name=name, scopes=frozenset(scopes))

    def _refuse_reserved_user(self, user: str, what: str) -> None:
        """Raise Refused for a user's id that a key with `acts_for` gives its users."""
        if user.startswith(tuple(f"{name}:" for name in self._keys.acting())):
            raise Refused(
                "unauthenticated", f"{what} is reserved for users of a key with `acts_for`"
            )

    def _by_cookie(self, request: Request) -> Caller:
        """Return the caller of a cookie. Browsers send cookies with requests of other sites too, so
        a request that changes something must come from a page of this server."""
        id = self._sessions.key_of(request.cookies[self._sessions.cookie(request)])
        key = self._keys.by_id(id) if id else None
        if key is None:
            raise Refused("unauthenticated", "the session ended; sign in again")
        if request.method not in ("GET", "HEAD") and not _same_origin(request):
            raise Refused("wrong_origin", "the request comes from a page of another site")
        return of_key(key)

    def acting(self, caller: Caller, user: str) -> Caller:
        """Return the person named in the body of a request, whose key acts for others. Where its
        headers named one, the body does not count: programs pass on bodies that their users
        wrote."""
        if not caller.acts_for or not user:
            return caller
        return _for_user(caller, person_ids.person(user, "`user` of the body"), "")


def of_key(key: Key) -> Caller:
    """Return the owner of a key."""
    return Caller(
        identity=key.identity,
        name=key.name,
        scopes=frozenset(key.scopes),
        assistants=key.assistants,
        acts_for=key.acts_for,
        client=key.client,
        citations=key.citations,
    )


def _credentials(request: Request) -> str | None:
    """Return the key or token of a request; None without one. Raises Refused."""
    headers = request.headers.getlist("authorization")
    api_key = request.headers.getlist("x-api-key")
    if len(headers) + len(api_key) > 1:
        raise Refused("unauthenticated", "the request has several keys")
    if api_key:
        return api_key[0]
    if not headers:
        return None
    scheme, _, value = headers[0].partition(" ")
    if value.strip() == NO_KEY:
        return None
    if scheme.lower() != "bearer" or not value.strip():
        raise Refused("unauthenticated", "the Authorization header must be `Bearer` and a key")
    return value.strip()


def _by_headers(forwarded: ForwardedSettings, request: Request) -> Caller:
    sender = request.client.host if request.client else ""
    if not within(sender, forwarded.addresses):
        raise Refused("unauthenticated", f"{forwarded.user} is accepted from the proxy alone")
    if forwarded.secret:
        given = _read_header(request, "x-forwarded-secret")
        if not hmac.compare_digest(given.encode(), forwarded.secret.encode()):
            raise Refused("unauthenticated", "the proxy's secret is missing or wrong")
    user = person_ids.person(_read_header(request, forwarded.user), forwarded.user)
    team, tenant = (
        person_ids.group(_read_header(request, header), header) if header else ""
        for header in (forwarded.team, forwarded.tenant)
    )
    identity = Identity(user_id=user, team_id=team, tenant_id=tenant)
    return Caller(
        identity=identity,
        name=f"forwarded:{user}",
        scopes=frozenset(READER_SCOPES),
        spoken_for=True,
    )


def _read_header(request: Request, header: str) -> str:
    values = request.headers.getlist(header)
    if len(values) > 1:
        raise Refused("unauthenticated", f"the request has several {header} headers")
    return person_ids.from_header(values[0]) if values else ""


def _acting(caller: Caller, key: Key, request: Request) -> Caller:
    """Return the person that a key names in headers: Open WebUI's signed token where the key has
    its secret, else plain ones."""
    if key.jwt_secret:
        plain = [name for name in request.headers if name.startswith("x-openwebui-user-")]
        plain = [name for name in plain if name != "x-openwebui-user-jwt"]
        token = _read_header(request, "x-openwebui-user-jwt")
        if not token and plain:
            raise Refused(
                "unauthenticated",
                "this key needs the signed user token, and the request has plain headers",
                hint="set FORWARD_USER_INFO_HEADER_JWT_SECRET in Open WebUI",
            )
        if not token:
            return replace(caller, acts_for=False)
        return _for_user(caller, signed_user(token, key.jwt_secret), "")
    header = next((name for name in USER_HEADERS if name in request.headers), None)
    if header is None:
        return caller
    user = person_ids.person(_read_header(request, header), header)
    team = person_ids.group(_read_header(request, TEAM_HEADER), TEAM_HEADER)
    return _for_user(caller, user, team)


def _for_user(caller: Caller, user: str, team: str) -> Caller:
    identity = caller.identity.model_copy(
        update={"user_id": f"{caller.name}:{user}", "team_id": team or caller.identity.team_id}
    )
    return replace(caller, identity=identity, acts_for=False, spoken_for=True)


def _local() -> Caller:
    return Caller(identity=Identity(user_id="local"), name="local", scopes=frozenset(ALL_SCOPES))


def _anonymous(address: str) -> Caller:
    return Caller(
        identity=Identity(),
        name=f"anonymous:{network(address)}",
        scopes=frozenset({"chat"}),
        anonymous=True,
    )


def _same_origin(request: Request) -> bool:
    # Browsers send it since 2023 at the latest; `Origin` is for older ones.
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        return site == "same-origin"
    origin = request.headers.get("origin", "")
    return bool(origin) and urlsplit(origin).netloc == request.headers.get("host")
