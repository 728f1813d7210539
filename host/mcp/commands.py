"""Whether the program of a stdio server is there, without starting it. Asks the file system and
nothing else."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from groundhook.host.core.types.specs import ServerSpec


def missing_command(spec: ServerSpec, environment: Mapping[str, str], folder: Path) -> str:
    """Why the server could not be started from `folder`; "" when it could, or when there is no PATH
    to look along."""
    if spec.transport != "stdio":
        return ""
    if os.sep in spec.command:
        path = folder / spec.command
        if not path.is_file():
            return f"there is no program {spec.command!r}"
        return "" if os.access(path, os.X_OK) else f"{spec.command!r} may not be run"
    path_variable = spec.env.get("PATH", environment.get("PATH", ""))
    if not path_variable or shutil.which(spec.command, path=path_variable):
        return ""
    return f"there is no program {spec.command!r} along PATH"
