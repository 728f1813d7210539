"""`groundhook docs`: the documentation of the installed version."""

from __future__ import annotations

import re
from pathlib import Path

import click

import groundhook
from groundhook.core.errors import suggestion
from groundhook.host.cli.edge import print_text

COMMENT = re.compile(r"^<!--.*?-->\n+", re.DOTALL | re.MULTILINE)
DOCS = Path(groundhook.__file__).with_name("docs")


@click.command("docs")
@click.argument("page", default="", metavar="[PAGE]")
def command(page: str) -> int:
    """Print PAGE of the documentation, as Markdown; without PAGE, the names of all pages and their
    titles.

    These are the pages of this version, such as hooks or toolkits/memory.
    """
    pages = {path.relative_to(DOCS).with_suffix("").as_posix(): path for path in DOCS.rglob("*.md")}
    if not page:
        width = max(map(len, pages))
        lines = (f"{name:{width}}  {_title(pages[name])}\n" for name in sorted(pages))
        return print_text("".join(lines))
    name = page.removeprefix("docs/").removesuffix(".md")
    if name not in pages:
        hint = suggestion(name, sorted(pages))
        if not hint.startswith("did you mean"):
            hint = "`groundhook docs` lists them"
        raise click.UsageError(f"no page {name!r} ({hint})")
    # Comments are for the authors of the page.
    return print_text(COMMENT.sub("", pages[name].read_text(encoding="utf-8")))


def _title(page: Path) -> str:
    """Return the heading with which a page begins."""
    with page.open(encoding="utf-8") as lines:
        return lines.readline().strip("# \n")
