"""Install this checkout into .venv: `install.py .`, or `install.py '.[dev]'` for its tests too.

While pip works, one line shows what it does and for how long; where standard error is not a
terminal, a line every ten seconds. Everything is written to standard error. pip's own output
follows when it fails.
"""

from __future__ import annotations

import re
import subprocess
import sys
import threading
import time
from pathlib import Path

VENV = Path(".venv")
PYTHON = VENV / "bin" / "python"
PIP = [PYTHON, "-m", "pip", "install", "--disable-pip-version-check", "--progress-bar", "off"]
WHAT = ["-c", "constraints.txt", "-e", sys.argv[1]]
DOING = {
    "Collecting": "collecting",
    "Downloading": "downloading",
    "Using": "collecting",
    "Obtaining": "reading",
    "Building": "building",
    "Installing": "installing the packages",
}


class Progress:
    """The line that moves: seconds since the beginning and what goes on."""

    def __init__(self) -> None:
        self.doing = "making the environment"
        self._began = time.monotonic()
        self._over = threading.Event()
        self._terminal = sys.stderr.isatty()
        self._thread = threading.Thread(target=self._show, daemon=True)

    def __enter__(self) -> Progress:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        if self._terminal:
            sys.stderr.write("\r\x1b[K")

    @property
    def seconds(self) -> int:
        return round(time.monotonic() - self._began)

    def _show(self) -> None:
        while True:
            line = f"Installing into {VENV}: {self.seconds:3} s, {self.doing}"
            sys.stderr.write(f"\r\x1b[K{line[:79]}" if self._terminal else f"{line}\n")
            sys.stderr.flush()
            if self._over.wait(0.2 if self._terminal else 10):
                return


def installed(progress: Progress) -> tuple[int, list[str]]:
    """Run pip → its exit code and what it printed."""
    output: list[str] = []
    found = 0
    with subprocess.Popen(
        [*PIP, *WHAT], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as pip:
        assert pip.stdout is not None
        for line in pip.stdout:
            output.append(line)
            first, _, rest = line.strip().partition(" ")
            found += first == "Collecting"
            if first == "Installing" and rest.startswith("collected"):
                packages = rest.count(",") + 1
                progress.doing = f"{DOING[first]} ({packages}, about {packages * 0.4:.0f} s)"
            elif first in ("Collecting", "Downloading"):
                name = re.match(r"[A-Za-z0-9_.]*", rest.rpartition("/")[2])
                progress.doing = f"{DOING[first]} {name and name[0]} ({found})"
            elif first in DOING and first != "Installing":
                progress.doing = f"{DOING[first]} ({found})"
    return pip.returncode, output


def has_pip() -> bool:
    try:
        found = subprocess.run([PYTHON, "-c", "import pip"], capture_output=True, check=False)
    except OSError:
        return False
    return found.returncode == 0


def main() -> int:
    with Progress() as progress:
        made = (
            has_pip()
            or not (
                created := subprocess.run(
                    [sys.executable, "-m", "venv", "--clear", VENV],
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                    check=False,
                )
            ).returncode
        )
        code, output = installed(progress) if made else (1, [created.stdout])
    if code:
        sys.stderr.writelines(output)
    if not made:
        sys.stderr.write(
            "The virtual environment cannot be made; on Debian and Ubuntu install python3-venv.\n"
        )
    elif code == 0:
        version = sys.version.partition(" ")[0]
        sys.stderr.write(f"Installed into {VENV} with Python {version} in {progress.seconds} s.\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
