"""Real PostgreSQL and MariaDB for tests and benches: one that can be reached, else one started from
installed binaries.

A server is looked for at GROUNDHOOK_TEST_POSTGRES or GROUNDHOOK_TEST_MARIADB (a database URL whose
user may create databases), then at the usual local addresses. One that is started lives in a
temporary folder with syncing off, is shared by the test workers of one run, and ends with the last
of them.
"""

from __future__ import annotations

import fcntl
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from threading import Event
from typing import Any
from urllib.parse import quote

import anyio
import psutil
import psycopg
import sqlalchemy as sa
from sqlalchemy import exc
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

from tests.parts.children import of_children

KINDS = ("postgresql", "mariadb")
VARIABLES = {"postgresql": "GROUNDHOOK_TEST_POSTGRES", "mariadb": "GROUNDHOOK_TEST_MARIADB"}
DRIVERS = {"postgresql": "postgresql+psycopg", "mariadb": "mariadb+asyncmy"}
USUAL = {
    "postgresql": [
        "postgresql://postgres:postgres@127.0.0.1:5432/postgres",
        "postgresql://postgres@127.0.0.1:5432/postgres",
    ],
    "mariadb": ["mariadb://root:root@127.0.0.1:3306/mysql", "mariadb://root@127.0.0.1:3306/mysql"],
}
STARTING = 120  # seconds at most


class NotThere(Exception):
    """Why there is no server."""


@dataclass(frozen=True)
class Databases:
    """A server. `url` is that of a user who may create databases."""

    kind: str
    url: str

    async def execute(self, *statements: str, database: str = "") -> None:
        url = sa.make_url(self.url).set(drivername=DRIVERS[self.kind])
        engine = create_async_engine(
            url.set(database=database or url.database),
            poolclass=NullPool,
            isolation_level="AUTOCOMMIT",
        )
        async with engine.connect() as connection:
            for statement in statements:
                await connection.exec_driver_sql(statement)
        await engine.dispose()

    async def create(self, name: str) -> str:
        """A new database → its URL."""
        plain = "TEMPLATE template0" if self.kind == "postgresql" else "CHARACTER SET utf8mb4"
        await self.execute(f"CREATE DATABASE {name} {plain}")
        return sa.make_url(self.url).set(database=name).render_as_string(hide_password=False)

    async def drop(self, name: str) -> None:
        await self.execute(
            f"DROP DATABASE IF EXISTS {name}"
            + (" WITH (FORCE)" if self.kind == "postgresql" else "")
        )


@contextmanager
def serving(kind: str, shared: Path) -> Iterator[Databases]:
    """A server of this kind. `shared`: a folder that all workers of a run know. Raises NotThere
    with the reason."""
    if url := os.environ.get(VARIABLES[kind]):  # noqa: TID251 - a test's own setting
        yield Databases(kind, url)
        return
    if found := next((url for url in USUAL[kind] if _reachable(kind, url)), None):
        yield Databases(kind, found)
        return
    note, users = shared / f"{kind}.url", shared / f"{kind}.users"
    with _locked(shared / f"{kind}.lock"):
        if not note.exists():
            note.write_text(_STARTERS[kind]())
        url, folder = note.read_text().splitlines()
        users.write_text(str(int(users.read_text() if users.exists() else 0) + 1))
    try:
        yield Databases(kind, url)
    finally:
        with _locked(shared / f"{kind}.lock"):
            left = int(users.read_text()) - 1
            users.write_text(str(left))
            if left == 0:
                note.unlink()
                _end(kind, Path(folder))


@dataclass(frozen=True)
class OwnPostgresql:
    """A PostgreSQL that a test may restart, end and stop in its steps."""

    url: str
    folder: Path

    def control(self, *words: str) -> None:
        """Run `pg_ctl`: `restart` also starts one that has ended."""
        binary = _binaries("initdb", *POSTGRESQL) / "pg_ctl"
        log = self.folder / "log"
        _run("postgres", binary, "-D", self.folder / "data", "-l", log, "-w", *words)

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """None of its processes runs, and their connections stay open."""
        file = self.folder / "data" / "postmaster.pid"
        server = psutil.Process(int(file.read_text().splitlines()[0]))
        server.suspend()  # it starts no other
        try:
            of_children(psutil.Process.suspend, of=server, all_below=True)
            yield
        finally:
            of_children(psutil.Process.resume, of=server, all_below=True)
            server.resume()


@contextmanager
def own_postgresql() -> Iterator[OwnPostgresql]:
    """A PostgreSQL for one module, which keeps what it has acknowledged. Raises NotThere."""
    url, folder = _start_postgresql(commit="on").splitlines()
    try:
        yield OwnPostgresql(url, Path(folder))
    finally:
        _end("postgresql", Path(folder))


def _reachable(kind: str, url: str) -> bool:
    place = sa.make_url(url)
    with socket.socket() as probe:
        probe.settimeout(1)
        if probe.connect_ex((place.host, place.port)):
            return False

    async def ask() -> bool:
        try:
            await Databases(kind, url).execute("SELECT 1")
        except (exc.SQLAlchemyError, OSError):
            return False
        return True

    # In a thread of its own: the caller may have an event loop already.
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(anyio.run, ask).result()


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


# ----------------------------------------------------------------------------------------- starting


POSTGRESQL = ("/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/opt/homebrew/opt/postgresql*/bin")


def _start_postgresql(commit: str = "off") -> str:
    binaries = _binaries("initdb", *POSTGRESQL)
    folder, port = _folder("postgresql", "postgres"), _free_port()
    plain = ["-U", "postgres", "-E", "UTF8", "--locale=C.UTF-8", "--auth=trust", "--no-sync"]
    _run("postgres", binaries / "initdb", "-D", folder / "data", *plain)
    options = (
        f"-c listen_addresses=127.0.0.1 -p {port} -k {folder} -c fsync=off -c"
        f" synchronous_commit={commit} -c full_page_writes=off"
    )
    _run(
        "postgres",
        binaries / "pg_ctl",
        "-D",
        folder / "data",
        "-l",
        folder / "log",
        "-w",
        "-o",
        options,
        "start",
    )
    return f"postgresql://postgres@127.0.0.1:{port}/postgres\n{folder}\n"


def _start_mariadb() -> str:
    install = (
        _binaries("mariadb-install-db", "/usr/bin", "/usr/local/bin", "/opt/homebrew/bin")
        / "mariadb-install-db"
    )
    server = (
        _binaries("mariadbd", "/usr/sbin", "/usr/local/sbin", "/usr/libexec", "/opt/homebrew/bin")
        / "mariadbd"
    )
    folder, port = _folder("mariadb", "mysql"), _free_port()
    quick = [
        "--innodb-flush-log-at-trx-commit=0",
        "--innodb-log-file-size=64M",
        "--innodb-doublewrite=0",
    ]
    _run(
        "mysql",
        install,
        "--no-defaults",
        f"--datadir={folder}/data",
        "--auth-root-authentication-method=normal",
        "--skip-test-db",
        *quick,
    )
    pid = [
        f"--socket={folder}/socket",
        f"--pid-file={folder}/pid",
        f"--port={port}",
        "--bind-address=127.0.0.1",
    ]
    size = [
        "--innodb-buffer-pool-size=256M",
        "--skip-log-bin",
        "--skip-name-resolve",
        "--performance-schema=OFF",
    ]
    log = folder / "log"
    command = [server, "--no-defaults", f"--datadir={folder}/data", *pid, *quick, *size]
    # It serves other workers too.
    _run("mysql", "sh", "-c", 'log="$0"; "$@" >"$log" 2>&1 &', log, *command)
    url = f"mariadb://root@127.0.0.1:{port}/mysql"
    for _ in range(STARTING * 10):
        if _reachable("mariadb", url):
            return f"{url}\n{folder}\n"
        if log.exists() and "Aborting" in log.read_text(errors="replace"):
            raise NotThere(f"mariadbd ended at once: {log.read_text(errors='replace')[-500:]}")
        Event().wait(0.1)
    raise NotThere("mariadbd did not answer in time")


_STARTERS = {"postgresql": _start_postgresql, "mariadb": _start_mariadb}


def _end(kind: str, folder: Path) -> None:
    if kind == "postgresql":
        control = _binaries("initdb", *POSTGRESQL) / "pg_ctl"
        _run("postgres", control, "-D", folder / "data", "-m", "immediate", "stop")
    else:
        pid = int((folder / "pid").read_text())
        os.kill(pid, signal.SIGKILL)  # its data goes with it
        for _ in range(50):
            if not psutil.pid_exists(pid):
                break
            Event().wait(0.1)
    shutil.rmtree(folder, ignore_errors=True)


def _binaries(name: str, *places: str) -> Path:
    """The folder that has a program."""
    if found := shutil.which(name):
        return Path(found).parent
    for place in places:
        for folder in sorted(Path("/").glob(place.lstrip("/")), reverse=True):
            if (folder / name).exists():
                return folder
    raise NotThere(f"no {name} is installed (Debian: apt-get install postgresql mariadb-server)")


def _folder(kind: str, user: str) -> Path:
    folder = Path(tempfile.mkdtemp(prefix=f"groundhook-{kind}-"))
    if who := _as(user):
        shutil.chown(folder, user=str(who["user"]))
    return folder


def _as(user: str) -> dict[str, Any]:
    """Servers refuse to run as root: then they run as their own user, or as nobody."""
    if os.geteuid() != 0:
        return {}
    for name in (user, "nobody"):
        try:
            pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": name}
    raise NotThere("there is no user to run the server as")


def _run(user: str, *command: object) -> None:
    words = [str(word) for word in command]
    environment = {**os.environ, "LC_ALL": "C.UTF-8"}  # noqa: TID251 - of a program of the system
    with tempfile.TemporaryFile() as output:  # a pipe would be kept open by the server
        done = subprocess.run(
            words,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd="/",
            env=environment,
            timeout=STARTING,
            check=False,
            **_as(user),
        )
        output.seek(0)
        if done.returncode:
            raise NotThere(
                f"{words[0]} failed: {output.read().decode(errors='replace').strip()[-500:]}"
            )


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def own_schema(server: str) -> Iterator[str]:
    """A new schema → the URL of a database that has nothing else."""
    name = f"own_{token_hex(6)}"
    with psycopg.connect(server, autocommit=True) as db:
        db.execute(f"create schema {name}".encode())
        try:
            yield f"{server}?options={quote(f'-csearch_path={name}')}"
        finally:
            db.execute(f"drop schema {name} cascade".encode())
