"""The short way for the answer to a host call: a socket pair on which V8's own thread waits, with
the host at the other end.

Without it an answer goes to the thread that reads the worker's frames, which then wakes V8's: one
switch of threads more. A worker has a fixed number of lanes, made with it; a run has one to itself
as long as its isolate lives.

    frame    length in bytes, 32 bits little endian, and the answer in UTF-16, little endian;
             length 0xffffffff: only wake up, what there is to know is known in the process
"""

from __future__ import annotations

import socket
import struct
from contextlib import suppress

from groundhook.hooks.vigil import Vigil
from groundhook.host.core.errors import HookCrashed

LANES = 8  # for each worker; runs beyond are answered through its reading thread
WANTED_BYTES = 128 * 1024

_AT_ONCE = 16 * 1024
_LENGTH = struct.Struct("<I")
_WOKEN = 0xFFFFFFFF


class Lane:
    """Both ends. The host writes, and closes its copy of the end that V8's thread reads; the worker
    needs both, to wake it."""

    def __init__(self, reading: socket.socket, writing: socket.socket) -> None:
        self._reading = reading
        self._writing = writing
        self.vigil: Vigil | None = None  # before the worker's end waits
        self._longest = writing.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) // 2

    @classmethod
    def made(cls) -> Lane:
        reading, writing = socket.socketpair()
        writing.setblocking(False)
        if writing.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) < WANTED_BYTES:
            writing.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, WANTED_BYTES)
        return cls(reading, writing)

    @classmethod
    def inherited(cls, reading: int, writing: int) -> Lane:
        return cls(socket.socket(fileno=reading), socket.socket(fileno=writing))

    @property
    def descriptors(self) -> tuple[int, int]:
        return self._reading.fileno(), self._writing.fileno()

    def close_reading(self) -> None:
        self._reading.close()

    def close(self) -> None:
        self._reading.close()
        self._writing.close()

    # ---- the host's side

    def send(self, text: str) -> bool:
        """Answer; False when it must go the long way: it is too long, or nobody reads. An empty
        lane takes a frame whole, and it is empty, since one answer at most is under way; else
        HookCrashed is raised."""
        answer = text.encode("utf-16-le", "surrogatepass")
        if _LENGTH.size + len(answer) > self._longest:
            return False
        frame = _LENGTH.pack(len(answer)) + answer
        try:
            sent = self._writing.send(frame)
        except OSError:
            return False
        if sent < len(frame):
            raise HookCrashed("an answer to a host call could not be handed over whole")
        return True

    # ---- the worker's side

    def wait(self) -> bytes | None:
        """Until there is an answer, in UTF-16, or until woken: None."""
        received = self._looked() or self._reading.recv(_AT_ONCE)
        while len(received) < _LENGTH.size:
            received += self._reading.recv(_AT_ONCE)
        (length,) = _LENGTH.unpack_from(received)
        if length == _WOKEN:
            return None
        while len(received) < _LENGTH.size + length:
            received += self._reading.recv(_LENGTH.size + length - len(received))
        return received[
            _LENGTH.size : _LENGTH.size + length
        ]  # a wake-up behind it came too late to matter

    def _looked(self) -> bytes:
        """What comes within a moment; empty when nothing does."""
        if self.vigil is None or not self.vigil.begins():
            return b""
        for _ in self.vigil.looks():
            try:
                found = self._reading.recv(_AT_ONCE, socket.MSG_DONTWAIT)
            except BlockingIOError:
                continue
            self.vigil.ended(found=True)
            return found
        return b""

    def wake(self) -> None:
        self._writing.send(_LENGTH.pack(_WOKEN))

    def empty(self) -> None:
        """Forget what was sent to a run that has ended, before the lane is another's."""
        with suppress(BlockingIOError):
            while True:
                self._reading.recv(_AT_ONCE, socket.MSG_DONTWAIT)
