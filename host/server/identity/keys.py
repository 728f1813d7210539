"""Keys of the server: `gh_`, eight characters that name the key, `_`, and 256 random bits.

They are stored as SHA-256 in `server-keys.json` in the app's state folder: what is random needs no
slow hash. The file is read again when it changes, so a revoked key ends at once in every process.

The key for this machine, which `groundhook serve` prints where nothing else is configured, is kept
as it is, since a client on this machine has it in its environment beyond a restart.
"""

from __future__ import annotations

import hmac
import os
import re
import secrets
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import portalocker
from pydantic import Field, TypeAdapter, ValidationError

from groundhook.core.errors import ConfigError, StorageError, UnknownName, UsageError
from groundhook.core.server_settings import READER_SCOPES, CitationStyle, KeySettings, ServerScope
from groundhook.core.types.base import Value
from groundhook.core.types.turn import Identity
from groundhook.host.server.identity.private_file import read_or_make

FILE = "server-keys.json"
LOCAL = "server-local-key"
USES = "server-key-uses.json"  # the day of the last use, by the id of the key
SHORTEST = 32  # characters of a key from the app's files
LONGEST = 200
_KEY = re.compile(r"gh_[a-z0-9]{8}_[\w-]{43}", re.ASCII)


class Key(Value):
    """A stored key. `ends` is in seconds since 1970; 0: never."""

    id: str
    hash: str
    name: str
    user: str = ""
    team: str = ""
    tenant: str = ""
    scopes: tuple[ServerScope, ...] = READER_SCOPES
    assistants: tuple[str, ...] | None = None
    acts_for: bool = False
    jwt_secret: str = Field(default="", repr=False)
    client: str = ""
    citations: CitationStyle | None = None
    made: int = 0
    ends: int = 0

    @property
    def identity(self) -> Identity:
        """The identity of requests with this key."""
        return Identity(user_id=self.user, team_id=self.team, tenant_id=self.tenant)


_KEYS = TypeAdapter(tuple[Key, ...])
_USES = TypeAdapter(dict[str, str])


def make_key() -> str:
    """Return a new key."""
    alphabet = "abcdefghijklmnopqrstuvwxyz0123456789"
    return f"gh_{''.join(secrets.choice(alphabet) for _ in range(8))}_{secrets.token_urlsafe(32)}"


def local_key(state: Path) -> str:
    """Return the key for this machine of an app's state folder, which is made when it is first
    needed. Raises StorageError."""
    path = local_key_file(state)
    key = read_or_make(path, make_key().encode()).decode(errors="replace")
    if not _KEY.fullmatch(key):
        raise StorageError(f"{str(path)!r} is damaged", hint="delete it: a new key is made")
    return key


def local_key_file(state: Path) -> Path:
    """Return the file of the key for this machine, which may not exist."""
    return state / LOCAL


def hash_of(key: str) -> str:
    """Return the hash that is stored of a key."""
    return sha256(key.encode()).hexdigest()


def id_of(key: str) -> str:
    """Return the part of a key that names it; for a key in another form, a part of its hash."""
    if key.startswith("gh_") and key[11:12] == "_":
        return key[3:11]
    return hash_of(key)[:12]


def configured(settings: Iterable[KeySettings]) -> list[Key]:
    """Return the keys of the app's files. Raises ConfigError for one that is empty or too short."""
    keys = []
    for each in settings:
        if not each.key:
            raise ConfigError(
                f"the key {each.name!r} of server.auth.keys is empty",
                hint="set the environment variable that it names",
            )
        if not SHORTEST <= len(each.key) <= LONGEST:
            raise ConfigError(
                f"the key {each.name!r} of server.auth.keys must have {SHORTEST} to {LONGEST}"
                " characters",
                hint="`groundhook keys add` makes one",
            )
        _check_name(each.name, each.acts_for)
        fields = each.model_dump(exclude={"key"})
        keys.append(Key(id=id_of(each.key), hash=hash_of(each.key), **fields))
    return keys


class KeyFile:
    """The file of the keys that `groundhook keys` creates."""

    def __init__(self, state: Path) -> None:
        self._path, self._uses = state / FILE, state / USES
        self._used: dict[str, str] = {}
        self._read_at: tuple[int, int] | None = None
        self._keys: tuple[Key, ...] = ()

    def all(self) -> tuple[Key, ...]:
        """Return the keys, the oldest first. Raises StorageError."""
        try:
            stat = self._path.stat()
        except FileNotFoundError:
            self._read_at, self._keys = None, ()
            return ()
        except OSError as exc:
            raise _unreadable(self._path, exc.strerror or str(exc)) from exc
        # Every change makes a new file, so two within one step of the clock differ in the inode.
        changed = (stat.st_mtime_ns, stat.st_ino)
        if changed != self._read_at:
            self._keys, self._read_at = self._load(), changed
        return self._keys

    def _load(self) -> tuple[Key, ...]:
        try:
            return _KEYS.validate_json(self._path.read_bytes())
        except (OSError, ValidationError) as exc:
            raise _unreadable(self._path, exc.__class__.__name__) from exc

    def uses(self) -> dict[str, str]:
        """Return the day on which each key was last used, as YYYY-MM-DD; no days if the file cannot
        be read."""
        try:
            return _USES.validate_json(self._uses.read_bytes())
        except (OSError, ValidationError):
            return {}

    def used(self, key: Key) -> None:
        """Store that a key is used today: once a day, and without waiting for another process that
        does the same."""
        today = datetime.now(UTC).date().isoformat()
        if self._used.get(key.id) == today:
            return
        # While the lock is taken the next request tries again. A folder that cannot be written is
        # not tried again that day.
        with suppress(portalocker.LockException):
            with suppress(OSError), self._locked(seconds=0):
                known = {each.id for each in self.all()}
                uses = {id: day for id, day in self.uses().items() if id in known}
                self._replace(self._uses, _USES.dump_json({**uses, key.id: today}))
            self._used[key.id] = today

    def add(self, key: Key) -> None:
        """Store a key. Raises UsageError for a name that is taken, ConfigError for one that does
        not fit, StorageError."""
        _check_name(key.name, key.acts_for)
        with self._locked():
            keys = self.all()
            if any(each.name == key.name for each in keys):
                raise UsageError(
                    f"there is a key {key.name!r} already",
                    hint="revoke it first, or choose another name",
                )
            self._write([*keys, key])

    def revoke(self, name: str) -> None:
        """Remove a key. Raises UnknownName, StorageError."""
        with self._locked():
            keys = self.all()
            others = [each for each in keys if each.name != name]
            if len(others) == len(keys):
                raise UnknownName("key", name, [each.name for each in keys])
            self._write(others)

    @contextmanager
    def _locked(self, seconds: float = 5) -> Iterator[None]:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with portalocker.Lock(self._path.with_suffix(".lock"), timeout=seconds):
            yield

    def _write(self, keys: Sequence[Key]) -> None:
        self._replace(self._path, _KEYS.dump_json(tuple(keys), indent=1))

    def _replace(self, path: Path, body: bytes) -> None:
        new = path.with_suffix(".new")
        # A new file, which only this user can read: not one that somebody has put there, nor a
        # link.
        new.unlink(missing_ok=True)
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(body)
        # Readers see the old file or the new one, never half of one.
        new.replace(path)


class Keyring:
    """All keys that the server accepts: those of the app's files, the local key, and those that
    `groundhook keys` created."""

    def __init__(self, fixed: Iterable[Key], file: KeyFile) -> None:
        self._fixed, self._file = tuple(fixed), file

    @property
    def empty(self) -> bool:
        """Whether no key is accepted."""
        return not self._fixed and not self._file.all()

    def find(self, presented: str) -> Key | None:
        """Return the key, or None if it is unknown, revoked or ended. Takes the same time whether
        the id is known or not."""
        id, hash = id_of(presented), hash_of(presented)
        stored = self._file.all()
        found = next((key for key in (*self._fixed, *stored) if key.id == id), None)
        same = hmac.compare_digest(hash, found.hash if found else "0" * len(hash))
        if found is None or not same or (found.ends and found.ends <= time.time()):
            return None
        if found in stored:
            self._file.used(found)
        return found

    def acting(self) -> list[str]:
        """Return the names of the keys that act for others; ids of their users begin with them."""
        return [key.name for key in (*self._fixed, *self._file.all()) if key.acts_for]

    def by_id(self, id: str) -> Key | None:
        """Return the key of an id, unless it ended."""
        found = next((key for key in (*self._fixed, *self._file.all()) if key.id == id), None)
        return None if found is None or (found.ends and found.ends <= time.time()) else found


def _check_name(name: str, acts_for: bool) -> None:
    """Raise ConfigError for a key that acts for others and whose name has a colon: two such keys
    could mean one person (`a:b` for `c`, `a` for `b:c`)."""
    if acts_for and ":" in name:
        raise ConfigError(
            f"the key {name!r} acts for others, so its name must not have a colon",
            hint="ids of its users are `<name>:<id>`",
        )


def _unreadable(path: Path, why: str) -> StorageError:
    return StorageError(f"the keys {str(path)!r} cannot be read: {why}")


def shown(key: Key) -> dict[str, Any]:
    """Return a key without its secret parts."""
    return key.model_dump(exclude={"hash", "jwt_secret"})
