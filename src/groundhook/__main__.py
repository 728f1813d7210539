"""`python -m groundhook`: the command line."""

import sys
from contextlib import suppress
from pathlib import Path

# `python -m` looks for every module in the current folder first: what lies in an app's folder is
# not part of the program.
if not sys.flags.safe_path:
    with suppress(OSError, ValueError):
        sys.path.remove(str(Path.cwd()))

from groundhook.host.cli.main import main

main()
