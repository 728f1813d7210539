"""The wheel and the sdist, as a user gets them: built once from a copy of the sources, and installed
in an environment of their own, which sees the dependencies of this one and nothing else of it."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = ("src", "core", "host", "handlers", "hooks", "rerankers", "toolkits")
FILES = ("pyproject.toml", "README.md", "LICENSE")
NOT_OURS = shutil.ignore_patterns("__pycache__", "*.egg-info", "build")
OTHERS = (
    "core",
    "toolkits",
    "host",
    "handlers",
    "hooks",
    "rerankers",
    "agent",
)  # packages that a user may have

OWN = """\
from pathlib import Path

OWNER = "the user"
with Path(__file__).parents[1].joinpath("imported.txt").open("a", encoding="utf-8") as file:
    print(__name__, file=file)
"""


def run(command: Sequence[object], folder: Path, *, code: int = 0) -> str:
    """What a command writes to standard output; it must end with this exit code."""
    done = subprocess.run(
        [str(part) for part in command],
        cwd=folder,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    assert done.returncode == code, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@dataclass(frozen=True)
class Built:
    """The distributions: `sdist` unpacked, `wheel` built from it, and a wheel of each example."""

    sdist: Path
    wheel: Path
    examples: tuple[Path, ...]


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    folder = tmp_path_factory.mktemp("built")
    source = folder / "source"
    for name in SOURCES:
        shutil.copytree(ROOT / name, source / name, symlinks=True, ignore=NOT_OURS)
    shutil.copytree(ROOT / "docs", source / "docs")
    for name in FILES:
        shutil.copy(ROOT / name, source)
    shutil.copytree(ROOT / "docs/plugins", folder / "plugins", ignore=NOT_OURS)
    build = "import sys; from setuptools import build_meta; build_meta.build_sdist(sys.argv[1])"
    run([sys.executable, "-c", build, folder], source)
    filtered: Any = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}  # since 3.11.4
    with tarfile.open(next(folder.glob("*.tar.gz"))) as archive:
        archive.extractall(folder, **filtered)
    sdist = next(path for path in folder.glob("groundhook-*") if path.is_dir())
    wheels = folder / "wheels"
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-index", "--no-deps"]
    plugins = sorted((folder / "plugins").iterdir())
    run([*pip, "--no-build-isolation", "--wheel-dir", wheels, sdist, *plugins], folder)
    wheel = next(wheels.glob("groundhook-*.whl"))
    return Built(sdist, wheel, tuple(path for path in sorted(wheels.iterdir()) if path != wheel))


Environment = Callable[..., Path]


@pytest.fixture(scope="session")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """Makes an environment with these wheels; returns its Python."""

    def make(*wheels: Path) -> Path:
        folder = tmp_path_factory.mktemp("environment")
        venv.create(folder, symlinks=True)
        python = folder / "bin/python"
        pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-index"]
        run([*pip, "--no-deps", "--no-compile", *wheels], folder)
        # A folder that a .pth file names is searched, and its own .pth files are not read: that of
        # the editable Groundhook among them.
        site = Path(sysconfig.get_path("purelib", vars={"base": str(folder)}))
        packages = [path for path in sys.path if path.endswith(("site-packages", "dist-packages"))]
        (site / "dependencies.pth").write_text("\n".join(packages) + "\n", encoding="utf-8")
        return python

    return make


@pytest.fixture(scope="session")
def python(built: Built, environment: Environment) -> Path:
    """The Python of an environment with the wheel."""
    return environment(built.wheel)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A user's folder, with packages whose names are those of folders of Groundhook."""
    for name in OTHERS:
        package = tmp_path / name
        package.mkdir()
        (package / "__init__.py").write_text(OWN, encoding="utf-8")
    return tmp_path
