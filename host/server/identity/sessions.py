"""Sessions of browsers: a cookie that names a key, signed with the secret of the app. The server
stores nothing for a session, so any process accepts it. It ends after its time, or when its key
ends."""

from __future__ import annotations

import time

from starlette.requests import Request
from starlette.responses import Response

from groundhook.host.server.identity.secret import Secret

COOKIE = "gh_session"
HOST_COOKIE = f"__Host-{COOKIE}"  # browsers take it from this host alone, by https
PURPOSE = "session"


class Sessions:
    """Makes and reads cookies. `secure`: clients reach the server by https. Over http the name has
    the port: browsers send the cookies of all ports of a host to each, and on a developer's machine
    there may be two servers."""

    def __init__(self, secret: Secret, hours: float, *, secure: bool = False) -> None:
        self._secret, self._seconds = secret, int(hours * 3600)
        self._secure = secure

    def cookie(self, request: Request) -> str:
        """Return the name of the cookie, as this client reaches the server."""
        if self._secure:
            return HOST_COOKIE
        return f"{COOKIE}_{request.url.port}" if request.url.port else COOKIE

    def set_cookie(
        self, request: Request, response: Response, key_id: str, *, secure: bool
    ) -> None:
        """Sign a browser in."""
        text = f"{key_id}.{int(time.time()) + self._seconds}"
        response.set_cookie(
            self.cookie(request),
            f"{text}.{self._secret.signature(PURPOSE, text)}",
            max_age=self._seconds,
            httponly=True,
            samesite="strict",
            secure=secure,
            path="/",
        )

    def key_of(self, cookie: str) -> str:
        """Return the id of the key from which a cookie was made; "" if the cookie is invalid or has
        ended."""
        text, _, signature = cookie.rpartition(".")
        if not self._secret.is_signature(PURPOSE, text, signature):
            return ""
        key_id, _, ends = text.rpartition(".")
        return key_id if int(ends) > time.time() else ""
