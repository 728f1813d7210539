"""Check that the program of a stdio server exists, without starting it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from groundhook.core.types.server_spec import ServerSpec


def missing_command(spec: ServerSpec, environment: Mapping[str, str], folder: Path) -> str:
    """Return why the server cannot be started from `folder`; "" if it can, or if PATH is not
    set."""
    if spec.transport != "stdio":
        return ""
    if os.sep in spec.command:
        path = folder / spec.command
        if not path.is_file():
            return f"the program {spec.command!r} does not exist"
        return "" if os.access(path, os.X_OK) else f"the program {spec.command!r} is not executable"
    path_variable = spec.env.get("PATH", environment.get("PATH", ""))
    if not path_variable or shutil.which(spec.command, path=path_variable):
        return ""
    return f"the program {spec.command!r} is not on PATH"
