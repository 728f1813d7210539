"""Reads questions, one per line: typed in a line editor on a terminal, or from standard input. The
only module that imports prompt_toolkit, and only on a terminal.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import anyio

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.input import Input
    from prompt_toolkit.output import Output

PIECE = 1 << 16  # bytes read from standard input at once
SIGN = "› "
HOW_TO_END = "/quit or Ctrl-D ends the conversation"


class Lines(Protocol):
    """The source of the questions of a conversation. `typed`: a person types them, and can stop an
    answer with Ctrl-C; hints are then shown after the answers."""

    typed: bool

    def __aiter__(self) -> AsyncIterator[str]: ...

    async def beside(self, show: Callable[[], None]) -> None:
        """Call `show`, which writes to the terminal, without disturbing the line that is being
        typed."""
        ...


def opened_lines(history: Path, commands: Sequence[str], *, json: bool) -> Lines:
    """Return a line editor if input and output are a terminal, else the lines of standard input.
    `history`: the file of earlier questions. `commands` are completed."""
    # With --json standard output is for programs: an editor would write its control codes into it.
    if json or not (sys.stdin.isatty() and sys.stdout.isatty()):
        return PipedLines()
    return Editor(history, commands)


class Editor:
    """A line editor with a history over all conversations of an app. Enter sends, Alt-Enter begins
    a new line, Ctrl-C discards what was typed, Ctrl-D ends."""

    typed = True

    def __init__(
        self,
        history: Path,
        commands: Sequence[str],
        *,
        input: Input | None = None,
        output: Output | None = None,
    ) -> None:
        self._session = _session(history, commands, input, output)

    async def __aiter__(self) -> AsyncIterator[str]:
        while True:
            try:
                # Ctrl-C is a key here; as a signal it belongs to the conversation.
                yield await self._session.prompt_async(SIGN, handle_sigint=False)
            except KeyboardInterrupt:
                if not self._session.default_buffer.text:
                    self._session.output.write(f"{HOW_TO_END}\n")
                    self._session.output.flush()
            except EOFError:
                return

    async def beside(self, show: Callable[[], None]) -> None:
        """Call `show` above the line that is being typed."""
        from prompt_toolkit.application import run_in_terminal

        if self._session.app.is_running:
            await run_in_terminal(show)
        else:
            show()


class PipedLines:
    """The lines of standard input. No thread waits for them, so the process can end at any time."""

    typed = False

    async def __aiter__(self) -> AsyncIterator[str]:
        descriptor = sys.stdin.fileno()
        # Event loops cannot wait for files and /dev/null, which never make a reader wait.
        waits = not stat.S_ISREG(os.fstat(descriptor).st_mode) and not is_nowhere(descriptor)
        held = b""
        while True:
            if waits:
                await anyio.wait_readable(descriptor)
            data = os.read(descriptor, PIECE)
            held += data
            *whole, held = held.split(b"\n")
            # At the end of the input the last line may lack its line feed.
            for line in [*whole, *([held] if not data and held else [])]:
                yield line.decode("utf-8", "replace")
            if not data:
                return

    async def beside(self, show: Callable[[], None]) -> None:
        """Call `show`."""
        show()


def is_nowhere(descriptor: int) -> bool:
    """Return whether a descriptor is /dev/null, which no event loop can wait for."""
    nowhere, file = Path(os.devnull).stat(), os.fstat(descriptor)
    return file.st_rdev == nowhere.st_rdev and stat.S_ISCHR(file.st_mode)


def _session(
    history: Path, commands: Sequence[str], input: Input | None, output: Output | None
) -> PromptSession[str]:
    # Imported here because the import takes longer than everything else that a command with a
    # message needs.
    from prompt_toolkit import PromptSession
    from prompt_toolkit.completion import WordCompleter
    from prompt_toolkit.history import FileHistory, History, InMemoryHistory
    from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

    keys = KeyBindings()

    @keys.add("enter")
    def _send(event: KeyPressEvent) -> None:
        event.current_buffer.validate_and_handle()

    @keys.add("escape", "enter")
    def _new_line(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    kept: History = InMemoryHistory()
    try:
        history.touch(mode=0o600)  # questions are private to their author
        kept = FileHistory(str(history))
    except OSError:  # without a writable folder there is no history, but the conversation works
        pass
    return PromptSession(
        history=kept,
        completer=WordCompleter(list(commands), sentence=True),
        complete_while_typing=False,
        multiline=True,
        prompt_continuation="  ",
        key_bindings=keys,
        enable_history_search=True,
        input=input,
        output=output,
    )
