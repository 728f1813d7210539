"""Measure the size of an installation: plain, with every extra, and what each extra adds.

    python -m bench.installing

Installs this checkout from the package index into fresh environments in a temporary folder: it
takes some minutes and two gigabytes. Prints a JSON line for each: megabytes (of 1,000,000 bytes) of
files in site-packages without pip and setuptools, and the largest packages. The size of an extra is
what it adds to a plain installation; packages that two extras share count for both. Writes the
table of installations and the sizes of extras in docs/installing.md anew.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from groundhook.core.extras import MODULES

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/installing.md"
# What the page shows as a whole: a plain installation, a knowledge base of every kind of document,
# everything, and spaCy beside it.
WHOLE: tuple[list[str], ...] = ([], ["documents"], ["all"], ["all", "spacy"])
# Runs in the environment: for each list of extras of `groundhook`, the bytes of each distribution
# that it needs.
WEIGH = """
import json, sys
from importlib import metadata
from pip._vendor.packaging.requirements import Requirement

def needed(extras):
    found, seen, left = {}, set(), [("groundhook", frozenset(extras))]
    while left:
        name, extras = key = left.pop()
        if key in seen:
            continue
        seen.add(key)
        distribution = metadata.distribution(name)
        found[distribution.name] = sum(
            path.stat().st_size for file in distribution.files or ()
            if (path := distribution.locate_file(file)).exists()
        )
        for text in distribution.requires or ():
            requirement = Requirement(text)
            if requirement.marker is None or any(
                requirement.marker.evaluate({"extra": extra}) for extra in ("", *extras)
            ):
                left.append((requirement.name, frozenset(requirement.extras)))
    return found

print(json.dumps([needed(extras) for extras in json.loads(sys.argv[1])]))
"""


def weighed(folder: Path, install: str, extras: list[list[str]]) -> list[dict[str, int]]:
    """Install `install` into a fresh environment, and weigh each list of extras there."""
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    python = str(folder / "bin" / "python")
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run(
        [*pip, "-c", str(ROOT / "constraints.txt"), install], check=True, stdout=sys.stderr
    )
    output = subprocess.check_output([python, "-c", WEIGH, json.dumps(extras)], text=True)
    found: list[dict[str, int]] = json.loads(output)
    return found


def line(name: str, sizes: dict[str, int]) -> None:
    largest = sorted(sizes.items(), key=lambda one: -one[1])[:4]
    print(
        json.dumps(
            {
                "installed": name,
                "mb": megabytes(sizes),
                "packages": len(sizes),
                "largest_mb": {name: round(size / 1e6) for name, size in largest},
            }
        ),
        flush=True,
    )


def megabytes(sizes: dict[str, int]) -> int:
    return round(sum(sizes.values()) / 1e6)


def write(whole: list[dict[str, int]], extras: dict[str, int]) -> None:
    """Write both tables of the page."""
    rows = [
        f"| `{requirement(names)}` | {megabytes(sizes)} | {len(sizes)} |\n"
        for names, sizes in zip(WHOLE, whole, strict=True)
    ]
    text = PAGE.read_text(encoding="utf-8")
    text = re.sub(r"(?<=packages \|\n\|---\|---\|---\|\n)(?:\|.*\n)+", "".join(rows), text)
    for name, added in extras.items():
        text = re.sub(rf"(\| `{name}` \|[^|]*\| )\d+", rf"\g<1>{added}", text)
    PAGE.write_text(text, encoding="utf-8")


def requirement(extras: list[str]) -> str:
    return f"groundhook[{','.join(extras)}]" if extras else "groundhook"


def main() -> None:
    with tempfile.TemporaryDirectory() as made:
        [plain] = weighed(Path(made) / "plain", str(ROOT), [[]])
        line("plain", plain)
        names = ["all", *map(str, MODULES)]
        wanted = [*WHOLE[1:], *([name] for name in names)]
        every = weighed(Path(made) / "all", f"{ROOT}[all,spacy]", wanted)
    whole = [plain, *every[: len(WHOLE) - 1]]
    extras = {}
    for name, sizes in zip(names, every[len(WHOLE) - 1 :], strict=True):
        added = {package: size for package, size in sizes.items() if package not in plain}
        line(name, added)
        extras[name] = megabytes(added)
    write(whole, extras)


if __name__ == "__main__":
    main()
