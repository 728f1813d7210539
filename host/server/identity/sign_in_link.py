"""The link with which the page is opened for the first time: its secret is for one use, within
`VALID_S` seconds, and stands for a key. `groundhook serve` prints it; the state folder has its
hash, so that any process of the server accepts it, and only one."""

from __future__ import annotations

import hmac
import os
import secrets
import time
from hashlib import sha256
from pathlib import Path

from groundhook.core.errors import StorageError

FILE = "server-link"
VALID_S = 3600


def make_link(state: Path, key_id: str) -> str:
    """Return the secret of a new link for a key; an earlier one ends. Raises StorageError."""
    secret = secrets.token_urlsafe(24)
    path = state / FILE
    new = path.with_suffix(f".{secrets.token_hex(4)}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(f"{_hash(secret)} {key_id} {int(time.time()) + VALID_S}")
        new.replace(path)
    except OSError as exc:
        raise StorageError(f"{str(path)!r} cannot be written: {exc.strerror}") from exc
    return secret


def redeem(state: Path, secret: str) -> str:
    """Return the id of the key for which a link stands, which ends it; "" for a wrong one."""
    path = state / FILE
    try:
        hash, key_id, ends = path.read_text(encoding="ascii").split()
        right = hmac.compare_digest(hash, _hash(secret)) and int(ends) > time.time()
        if right:
            path.unlink()  # which fails in all processes but one
    except (OSError, ValueError):
        return ""
    return key_id if right else ""


def _hash(secret: str) -> str:
    return sha256(secret.encode()).hexdigest()
