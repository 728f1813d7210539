"""The knowledge base's worker: the one process that has a state folder's collections open.

`python -m groundhook.handlers.kb.embedded.worker STATE IDLE_SECONDS` starts it in the background
and ends at once: with 0 when it listens, with BUSY when another worker holds the state folder. It
is independent of the process that started it, serves any number of processes on a local socket, and
ends after IDLE_SECONDS without a request, on request, or when its state folder is deleted. While it
runs it holds a lock on `kb/worker.lock`. `kb/worker.json` has its socket and the identity of its
lock: in a copy of the folder that is the lock of another worker. `requests` has the answers.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import hashlib
import json
import os
import signal
import socket
import stat
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import anyio
import portalocker

from groundhook.core.workers import close_inherited
from groundhook.handlers.kb.embedded.folder import identity
from groundhook.handlers.kb.embedded.requests import WorkerRequests

LISTENS, FAILED, BUSY, KILLED = 0, 1, 3, 4
# The system's limit is 108 bytes, of which some systems use a few themselves.
_LONGEST_SOCKET_PATH = 100
_LOOK_S = 0.5
# How long closing the collections may take. Then the process is killed: what was acknowledged is
# in its files, and the next worker waits for the folder.
_END_S = 10


async def serve(folder: Path, lock: IO[bytes], listener: socket.socket, idle_s: float) -> None:
    """Serve until idle, until stopped, or until the state folder is deleted."""
    gc.freeze()  # so that garbage collection, which stops searches, skips the imported modules
    async with anyio.create_task_group() as tasks:
        requests = WorkerRequests(folder, tasks)
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, requests.stopped.set)
        tasks.start_soon(requests.optimiser.run)
        server = await loop.create_unix_server(requests.accept, sock=listener)
        while not requests.stopped.is_set():
            with anyio.move_on_after(min(_LOOK_S, idle_s / 2)):
                await requests.stopped.wait()
            if not _still_there(folder, lock):
                # Closing the collections would write into a folder that was deleted.
                _leave(listener)
            if not requests.busy:
                requests.settle()
            if (
                not requests.busy
                and not requests.optimiser.busy
                and time.monotonic() - requests.last_at > idle_s
            ):
                requests.stopped.set()
        signal.alarm(_END_S)
        # New clients no longer find this worker; connected ones try again with the next one, and
        # repeat what is not answered yet.
        (folder / "worker.json").unlink(missing_ok=True)
        server.close()
        for connection in requests.connections:
            connection.close()
        tasks.cancel_scope.cancel()
    requests.close()


def _leave(listener: socket.socket) -> None:
    """End the process at once, without closing collections."""
    Path(listener.getsockname()).unlink(missing_ok=True)
    os._exit(0)


def _still_there(folder: Path, lock: IO[bytes]) -> bool:
    try:
        return identity((folder / "worker.lock").stat()) == identity(os.fstat(lock.fileno()))
    except OSError:
        return False


def _runtime_folder() -> Path:
    """Return a folder for sockets that only this user can enter, with a short path."""
    user = os.getuid()
    for base in (tempfile.gettempdir(), "/tmp"):
        folder = Path(base) / f"groundhook-{user}"
        if len(str(folder)) + 24 > _LONGEST_SOCKET_PATH:
            continue
        with contextlib.suppress(FileExistsError):
            folder.mkdir(mode=0o700)
        found = folder.lstat()
        if stat.S_ISDIR(found.st_mode) and found.st_uid == user and not found.st_mode & 0o077:
            return folder
    return Path(tempfile.mkdtemp(prefix="gh-", dir="/tmp"))


def _listen(folder: Path, lock: IO[bytes]) -> socket.socket:
    name = hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:16]
    path = _runtime_folder() / f"{name}.sock"
    # This process holds the lock: a socket of this name was left by a worker that was killed.
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(str(path))
    listener.listen(128)
    address = folder / "worker.json.new"
    own = {"socket": str(path), "lock": identity(os.fstat(lock.fileno()))}
    try:
        address.write_text(json.dumps({**own, "pid": os.getpid()}), encoding="utf-8")
        address.replace(folder / "worker.json")
    except OSError:
        # On a full disk the file that the last worker wrote will do if it has the same address.
        if not _has(folder / "worker.json", own):
            raise
    return listener


def _has(address: Path, own: Mapping[str, Any]) -> bool:
    try:
        return bool(own.items() <= json.loads(address.read_text(encoding="utf-8")).items())
    except (OSError, ValueError, AttributeError):
        return False


def main(state: str, idle_s: str) -> int:
    """Start the worker in the background and return LISTENS, BUSY, KILLED or FAILED."""
    # The worker outlives a server whose address it would hold.
    close_inherited()
    outcome, report = os.pipe()
    if worker := os.fork():
        os.close(report)
        if code := os.read(outcome, 1):
            return code[0]
        return KILLED if os.WIFSIGNALED(os.waitpid(worker, 0)[1]) else FAILED
    os.close(outcome)
    os.setsid()
    folder = Path(state) / "kb"
    with (folder / "worker.lock").open("ab") as lock:
        try:
            portalocker.lock(lock, portalocker.LOCK_EX | portalocker.LOCK_NB)
        except portalocker.LockException:
            os.write(report, bytes([BUSY]))
            os._exit(0)
        listener = _listen(folder, lock)
        address = listener.getsockname()
        os.write(report, bytes([LISTENS]))
        os.close(report)
        try:
            anyio.run(serve, folder, lock, listener, float(idle_s))
        finally:
            Path(address).unlink(missing_ok=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
