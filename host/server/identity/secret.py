"""The secret of an app. It signs or seals values that the server gives out and later receives
again: sessions, addresses of pages that a search found, queries. So the server stores nothing for
them, and any process accepts them."""

from __future__ import annotations

import base64
import hmac
import secrets
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESSIV

from groundhook.core.errors import StorageError
from groundhook.host.server.identity.private_file import read_or_make

FILE = "server-secret"
SECRET_BYTES = 32


class Secret:
    """The secret in a state folder, created when it is first needed."""

    def __init__(self, state: Path) -> None:
        self._path = state / FILE
        self._secret = b""

    def signature(self, purpose: str, text: str) -> str:
        """Return the signature of a text, which is valid for one purpose only. Raises
        StorageError."""
        digest = hmac.digest(self._read(), f"{purpose}:{text}".encode(), "sha256")
        return base64.urlsafe_b64encode(digest).decode().rstrip("=")

    def is_signature(self, purpose: str, text: str, signature: str) -> bool:
        """Return whether the signature is that of the text. Raises StorageError."""
        return hmac.compare_digest(self.signature(purpose, text).encode(), signature.encode())

    def seal(self, purpose: str, text: str) -> str:
        """Return a text that only this app can read, and only for the same purpose: letters,
        digits, `-` and `_`, the same for the same text. Raises StorageError."""
        sealed = self._cipher().encrypt(text.encode(), [purpose.encode()])
        return base64.urlsafe_b64encode(sealed).decode().rstrip("=")

    def unseal(self, purpose: str, sealed: str) -> str | None:
        """Return the text that was sealed for a purpose; None for anything else. Raises
        StorageError."""
        try:
            data = base64.urlsafe_b64decode(sealed + "=" * (-len(sealed) % 4))
            return self._cipher().decrypt(data, [purpose.encode()]).decode()
        except (InvalidTag, ValueError):
            return None

    def _cipher(self) -> AESSIV:
        return AESSIV(hmac.digest(self._read(), b"seal", "sha512"))

    def _read(self) -> bytes:
        if not self._secret:
            # A secret that exists is not made again, although new bytes are drawn here.
            secret = read_or_make(self._path, secrets.token_bytes(SECRET_BYTES))
            if len(secret) != SECRET_BYTES:
                raise StorageError(
                    f"{str(self._path)!r} has {len(secret)} bytes, not {SECRET_BYTES}: it is"
                    " damaged",
                    hint="delete it: a new secret is made, and everybody signs in again",
                )
            self._secret = secret
        return self._secret
