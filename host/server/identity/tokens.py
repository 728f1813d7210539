"""Reads signed tokens: those of identity providers, and Open WebUI's about its user. This is the
only module that uses PyJWT. A key set is fetched from the configured address only; addresses and
keys in a token's header are ignored."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import anyio
import jwt
from jwt import PyJWK, PyJWKSet
from jwt.exceptions import PyJWTError

from groundhook.core.errors import ConfigError, HostError
from groundhook.core.json_text import read_json
from groundhook.core.server_settings import READER_SCOPES, JWTSettings
from groundhook.core.types.turn import Identity
from groundhook.host.server.identity import person_ids
from groundhook.host.server.problems import Refused

# Fetches the text of a key set. Raises HostError.
FetchKeySet = Callable[[str], Awaitable[bytes]]

ASYMMETRIC = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA")
SYMMETRIC = ("HS256", "HS384", "HS512")
REQUIRED = ("exp", "iss", "aud", "sub")
LEEWAY_S = 30
LONGEST = 16 * 1024  # characters of a token
STALE_S = 3600.0  # longest use of a key set that cannot be fetched again
AGAIN_S = 60.0  # at least this long between two fetches for an unknown `kid`
SOON_S = 1.0  # at least this long between two fetches while there are no keys

log = logging.getLogger("groundhook.server")


@dataclass
class _KeySet:
    """The keys of an issuer, fetched when they are needed."""

    url: str
    fetch: FetchKeySet
    cache_s: float
    keys: dict[str, PyJWK] = field(default_factory=dict)
    fetched_at: float = float("-inf")
    tried_at: float = float("-inf")
    lock: anyio.Lock = field(default_factory=anyio.Lock)

    async def key(self, kid: str) -> PyJWK | None:
        """Return the key of an id; the only one, for a token that names none."""
        async with self.lock:
            now = time.monotonic()
            old = now - self.fetched_at > self.cache_s
            unknown = bool(kid) and kid not in self.keys
            if (old or unknown) and now - self.tried_at > (AGAIN_S if self.keys else SOON_S):
                await self._renew(now)
                # From the end of the fetch on, which may fail and take long: tokens that waited
                # for it must not cause a request each.
                self.tried_at = time.monotonic()
            if now - self.fetched_at > max(self.cache_s, STALE_S):
                return None
        if not kid:
            return next(iter(self.keys.values())) if len(self.keys) == 1 else None
        return self.keys.get(kid)

    async def _renew(self, now: float) -> None:
        try:
            keys = PyJWKSet.from_dict(read_json(await self.fetch(self.url))).keys
        except (HostError, PyJWTError, ValueError, TypeError, AttributeError) as exc:
            log.warning("the key set at %s cannot be used: %s", self.url, exc)
            return  # the old keys stay valid for a while
        self.keys = {key.key_id or "": key for key in keys}
        self.fetched_at = now


class Tokens:
    """Reads tokens of the configured issuers. Raises ConfigError for settings that contradict each
    other."""

    def __init__(self, issuers: Sequence[JWTSettings], fetch: FetchKeySet) -> None:
        self._issuers = {settings.issuer: settings for settings in issuers}
        self._sets = {
            settings.issuer: _KeySet(settings.jwks_url, fetch, settings.cache_s)
            for settings in issuers
            if settings.jwks_url
        }
        for n, settings in enumerate(issuers):
            _check(settings, f"server.auth.jwt[{n}]")
        if len(self._issuers) < len(issuers):
            names = [settings.issuer for settings in issuers]
            repeated = next(name for name in names if names.count(name) > 1)
            raise ConfigError(
                f"server.auth.jwt has several entries of the issuer {repeated!r}",
                hint="one entry accepts several audiences: `audience` may be a list",
            )

    async def read(self, token: str) -> tuple[Identity, tuple[str, ...], str]:
        """Return the identity, the scopes and the issuer of a token. Raises Refused."""
        try:
            return await self._read(token)
        except (PyJWTError, ValueError, TypeError, RecursionError) as exc:
            raise Refused("unauthenticated", "the token is not valid") from exc

    async def _read(self, token: str) -> tuple[Identity, tuple[str, ...], str]:
        if len(token) > LONGEST:
            raise ValueError("too long")
        # Only to choose the issuer, whose key then checks the signature and all claims.
        issuer = jwt.decode(token, options={"verify_signature": False}).get("iss")
        settings = self._issuers.get(issuer) if isinstance(issuer, str) else None
        if settings is None:
            raise ValueError("unknown issuer")
        claims = jwt.decode(
            token,
            key=await self._key(settings, jwt.get_unverified_header(token)),
            # Never the one that the token's header names.
            algorithms=list(_algorithms(settings)),
            audience=_audiences(settings),
            issuer=settings.issuer,
            leeway=LEEWAY_S,
            options={"require": list(REQUIRED)},
        )
        named = settings.claims
        user = person_ids.person(_claim(claims, named.user), _named(named.user))
        if len(self._issuers) > 1:  # each has its own users; no issuer has a space
            user = f"{settings.issuer} {user}"
        identity = Identity(
            user_id=user,
            team_id=person_ids.group(_claim(claims, named.team), _named(named.team)),
            tenant_id=person_ids.group(_claim(claims, named.tenant), _named(named.tenant)),
        )
        return identity, _scopes(claims, named.scopes), settings.issuer

    async def _key(self, settings: JWTSettings, header: Mapping[str, Any]) -> Any:
        if settings.secret or settings.public_key:
            return settings.secret or settings.public_key
        kid = header.get("kid", "")
        key = await self._sets[settings.issuer].key(kid if isinstance(kid, str) else "?")
        if key is None:
            raise ValueError("unknown key")
        return key


def signed_user(token: str, secret: str) -> str:
    """Return the user of Open WebUI's signed token. Raises Refused."""
    try:
        claims = jwt.decode(
            token,
            key=secret,
            algorithms=["HS256"],
            issuer="open-webui",
            leeway=LEEWAY_S,
            options={"require": ["exp", "iss", "sub"], "verify_aud": False},
        )
        return person_ids.person(_claim(claims, "sub"), f"{_named('sub')} of the signed user token")
    except (PyJWTError, ValueError, TypeError, RecursionError) as exc:
        raise Refused("unauthenticated", "the signed user token is not valid") from exc


def _check(settings: JWTSettings, where: str) -> None:
    """Raise ConfigError for settings of an issuer that contradict each other."""
    sources = [name for name in ("jwks_url", "public_key", "secret") if getattr(settings, name)]
    if len(sources) != 1:
        raise ConfigError(f"{where} needs one of jwks_url, public_key and secret")
    if not settings.issuer or not all(_audiences(settings)) or not _audiences(settings):
        raise ConfigError(f"{where} needs issuer and audience")
    allowed = SYMMETRIC if settings.secret else ASYMMETRIC
    wrong = [name for name in settings.algorithms if name not in allowed]
    if wrong:
        raise ConfigError(
            f"{where}.algorithms: {wrong[0]!r} does not fit {sources[0]}",
            hint=f"known: {', '.join(allowed)}",
        )


def _audiences(settings: JWTSettings) -> tuple[str, ...]:
    given = settings.audience
    return (given,) if isinstance(given, str) else given


def _algorithms(settings: JWTSettings) -> tuple[str, ...]:
    return settings.algorithms or (("HS256",) if settings.secret else ("RS256", "ES256"))


def _claim(claims: Mapping[str, Any], path: str) -> str:
    value: Any = claims
    for step in path.split(".") if path else ():
        value = value.get(step) if isinstance(value, Mapping) else None
    is_id = isinstance(value, (str, int)) and not isinstance(value, bool)
    return str(value) if path and is_id else ""


def _named(claim: str) -> str:
    return f"the claim {claim!r}"


def _scopes(claims: Mapping[str, Any], path: str) -> tuple[str, ...]:
    if not path:
        return READER_SCOPES
    value: Any = claims
    for step in path.split("."):
        value = value.get(step) if isinstance(value, Mapping) else None
    if isinstance(value, str):
        value = value.split()
    return tuple(str(each) for each in value) if isinstance(value, list) else ()
