"""A plain environment: what `pip install groundhook` brings and nothing else, as links to what is
installed here."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import groundhook

ROOT = Path(__file__).parents[2]


def wanted(requirements: list[str], extras: frozenset[str] = frozenset()) -> Iterator[Requirement]:
    """Those that hold on this machine, with these extras."""
    for text in requirements:
        requirement = Requirement(text)
        if requirement.marker is None or any(
            requirement.marker.evaluate({"extra": extra}) for extra in ("", *extras)
        ):
            yield requirement


def closure(requirements: list[str]) -> dict[str, metadata.Distribution]:
    """The distributions that pip would install, by name."""
    found: dict[str, metadata.Distribution] = {}
    seen: set[tuple[str, frozenset[str]]] = set()
    left = list(wanted(requirements))
    while left:
        requirement = left.pop()
        key = (requirement.name, frozenset(requirement.extras))
        if key not in seen:
            seen.add(key)
            found[requirement.name] = metadata.distribution(requirement.name)
            left += wanted(found[requirement.name].requires or [], key[1])
    return found


@pytest.fixture(scope="session")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of the environment."""
    folder = tmp_path_factory.mktemp("plain") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    site = next(folder.glob("lib/python*/site-packages"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for distribution in closure(project["dependencies"]).values():
        tops = {file.parts[0] for file in distribution.files or () if file.parts[0] != ".."}
        for top in tops - {"__pycache__"}:
            if not (site / top).exists():
                (site / top).symlink_to(Path(str(distribution.locate_file(top))))
    ours = metadata.distribution("groundhook")
    for file in ours.files or ():
        if file.name == "METADATA":
            info = file.parts[0]
            (site / info).symlink_to(Path(str(ours.locate_file(info))))
    source = Path(groundhook.__file__).parents[1]
    (site / "groundhook.pth").write_text(f"{source}\n", encoding="utf-8")
    return folder / "bin" / "python"
