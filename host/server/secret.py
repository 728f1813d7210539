"""The secret of an app. It signs values that the server gives out and later receives again:
sessions, and addresses of pages that a search found. So the server stores nothing for them, and any
process accepts them."""

from __future__ import annotations

import base64
import hmac
import os
import secrets
from pathlib import Path

from groundhook.host.core.errors import StorageError

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

    def _read(self) -> bytes:
        if not self._secret:
            try:
                self._secret = self._make()
            except OSError as exc:
                raise StorageError(f"{str(self._path)!r} cannot be used: {exc.strerror}") from exc
        return self._secret

    def _make(self) -> bytes:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        new = self._path.with_suffix(f".{secrets.token_hex(4)}")
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(secrets.token_bytes(SECRET_BYTES))
            file.flush()
            # Before it has its name: after a power cut the name must not lead to an empty file.
            os.fsync(file.fileno())
        try:
            os.link(new, self._path)  # the first process wins
        except FileExistsError:
            pass
        finally:
            new.unlink()
        if len(secret := self._path.read_bytes()) != SECRET_BYTES:
            raise StorageError(
                f"{str(self._path)!r} is not a whole secret",
                hint="delete it: a new one is made, and everybody signs in again",
            )
        return secret
