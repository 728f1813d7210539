"""Measure what the name of a product in a question costs: the questions about this repository's
documentation, plain and with "Groundhook", through `host.search`.

    python -m bench.product_names

Prints for each form of the questions how many find their page first and among the first five.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import anyio

from bench.certainty import HERE, OWN, Asked, read_own
from groundhook import Host, open_host

FORMS = {
    "plain": "{}?",
    "with the name at the end": "{} with Groundhook?",
    "with the name in front": "Groundhook: {}?",
    "with the name inside": "In Groundhook, {}?",
}


async def places(host: Host, form: str, asked: list[Asked]) -> list[int]:
    """Return the place of each question's page among the documents found, from 0; -1: not found."""
    found = []
    for one in asked:
        query = form.format(one.text.rstrip("?"))
        result = await host.search({"type": "kb", "query": query, "collections": ["docs"]})
        pages = list(dict.fromkeys(item.document_id for item in result.items))
        found.append(next((at for at, page in enumerate(pages) if page in one.answers), -1))
    return found


def make_app(folder: Path) -> None:
    for name, text in {"kb/docs.kb.yao": "{}", "agent/agent.yml": ""}.items():
        (folder / name).parent.mkdir()
        (folder / name).write_text(text)


async def main() -> None:
    asked = [one for file in OWN for one in read_own(file) if "Groundhook" not in one.text]
    with tempfile.TemporaryDirectory(
        prefix="groundhook-bench-", ignore_cleanup_errors=True
    ) as folder:
        make_app(Path(folder))
        async with open_host(folder, environment={}) as host:
            paths = [HERE.parent / each for each in ("README.md", "ARCHITECTURE.md", "docs")]
            await host.kb.add("docs", paths)
            for name, form in FORMS.items():
                found = await places(host, form, asked)
                figures = {
                    "questions": name,
                    "of": len(found),
                    "page first": found.count(0),
                    "among five": sum(0 <= at < 5 for at in found),
                }
                print(json.dumps(figures), flush=True)


if __name__ == "__main__":
    anyio.run(main)
