"""Draw docs/images/answer.svg: a question in a terminal, and its answer with citations.

    python -m bench.picture [ASSISTANT QUESTION]

Runs `groundhook chat` in this repository, whose sample collection `make demo` fills.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs/images/answer.svg"
QUESTION = ("docs", "How is a hook kept from harming the host?")
WIDTH = 100  # characters


def main(assistant: str, question: str) -> None:
    command = [sys.executable, "-m", "groundhook", "chat", assistant, question]
    terminal = {"FORCE_COLOR": "1", "COLUMNS": str(WIDTH), "TERM": "xterm-256color"}
    shown = subprocess.run(
        ["env", *(f"{name}={value}" for name, value in terminal.items()), *command],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    with Path("/dev/null").open("w", encoding="utf-8") as nowhere:
        console = Console(record=True, width=WIDTH, file=nowhere, force_terminal=True)
        console.print(Text(f'$ groundhook chat {assistant} "{question}"', style="bold"))
        console.print(Text.from_ansi(shown))
        PICTURE.parent.mkdir(parents=True, exist_ok=True)
        console.save_svg(str(PICTURE), title="groundhook")


if __name__ == "__main__":
    main(*(sys.argv[1:3] if len(sys.argv) > 2 else QUESTION))
