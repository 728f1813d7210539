"""Sessions of browsers: a cookie that names a key, signed with a secret of the app.

Nothing is kept for a session, so any process accepts it. It ends with its time or its key.
"""

from __future__ import annotations

import base64
import hmac
import os
import secrets
import time
from pathlib import Path

from starlette.responses import Response

from groundhook.host.core.errors import StorageError

COOKIE = "gh_session"
FILE = "server-secret"
SECRET_BYTES = 32


class Sessions:
    """Makes and reads cookies. The secret is made in the state folder when it is first needed."""

    def __init__(self, state: Path, hours: float) -> None:
        self._path, self._seconds = state / FILE, int(hours * 3600)
        self._secret = b""

    def set_cookie(self, response: Response, key_id: str, *, secure: bool) -> None:
        """Sign a browser in."""
        response.set_cookie(
            COOKIE,
            self._signed(f"{key_id}.{int(time.time()) + self._seconds}"),
            max_age=self._seconds,
            httponly=True,
            samesite="strict",
            secure=secure,
            path="/",
        )

    def key_of(self, cookie: str) -> str:
        """Return the id of the key that a cookie was made from; "" for one that is not ours, or
        ended."""
        text, _, signature = cookie.rpartition(".")
        if not hmac.compare_digest(self._signature(text).encode(), signature.encode()):
            return ""
        key_id, _, ends = text.rpartition(".")
        return key_id if int(ends) > time.time() else ""

    def _signed(self, text: str) -> str:
        return f"{text}.{self._signature(text)}"

    def _signature(self, text: str) -> str:
        digest = hmac.digest(self._read_secret(), f"session:{text}".encode(), "sha256")
        return base64.urlsafe_b64encode(digest).decode().rstrip("=")

    def _read_secret(self) -> bytes:
        if not self._secret:
            try:
                self._secret = self._make_secret()
            except OSError as exc:
                raise StorageError(f"{str(self._path)!r} cannot be used: {exc.strerror}") from exc
        return self._secret

    def _make_secret(self) -> bytes:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        new = self._path.with_suffix(f".{secrets.token_hex(4)}")
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(secrets.token_bytes(SECRET_BYTES))
        try:
            os.link(new, self._path)  # the first process wins
        except FileExistsError:
            pass
        finally:
            new.unlink()
        return self._path.read_bytes()
