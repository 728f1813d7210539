"""Every regular expression of the product takes time in proportion to its text, since `re` holds
Python's lock for as long as one match lasts: no thread, task or limit goes on beside it.

How to write one that does: CONTRIBUTING.md, "Regular expressions".
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

from groundhook.host.search.citations.reader import Grammar
from tests.attacks.pumps import growth, possessive_groups
from tests.parts.product import PRODUCT, modules, parsed

METHODS = {"search": 2, "match": 2, "fullmatch": 2, "findall": 2, "finditer": 2, "split": 3}
METHODS |= {"sub": 4, "subn": 4}  # each with the place of `flags` among the arguments of `re`'s own
ONE_MATCH = {"search", "match", "fullmatch"}

# Patterns that read only files which the operator of an app, or an author of its hooks, wrote, or a
# text whose length is bounded where it is made.
EXEMPT = {
    "handlers.db.question.forms": "a letter for each clause of a question of LONGEST_QUESTION",
    "host.check.hook_diagnostics": "sources of hooks, when they are checked",
    "host.check.unread_files": "sources of hooks, when they are checked",
    "host.check.yao": "files of packages, when they are checked",
    "host.cli.docs": "the pages of docs/",
    "host.cli.hints": "messages of this program",
    "host.config.jsonc": "files of an app",
    "host.config.resolve": "addresses in files of an app",
    "host.config.variables": "prompts in files of an app",
}
# Names that a pattern is made of in a function, with values like theirs.
MADE_OF: dict[str, dict[str, Any]] = {
    "host.search.citations.reader": {
        "numbered": False,
        "strict": Grammar.of("#ref:{id}", "[{index}]").pattern.pattern,
        "anyhow": Grammar.of("#ref:{id}", "[{index}]").anyhow.pattern,
        "parts": ["(?:(?i:r)(?:(?i:e)(?:(?i:f)(?:: ?[A-Za-z0-9]*)?)?)?)?"],
        "forms": [("[", "]", False), ("#ref:", "", False)],
    },
    "host.config.tree": {"besides": r"[\w/]+\.ts"},
    "core.concealed": {"pattern": r"(?<![\w.-])secret(?![\w-])"},
    "host.llm.candidates": {"found": ["", "[", "", "]"]},
    "handlers.db.model.fulltext": {"field": SimpleNamespace(name="title")},
    "handlers.db.engines.errors": {"clue": "no such column"},
    "handlers.db.question.tokens": {
        "digits": r"\d{1,3}(?:,\d{3}){1,12}\.\d{1,2}(?!\d)|\d{1,3}(?:\.\d{3}){0,12}\.000|\d+(?:,\d+)?"
    },
    "handlers.kb.embed": {"words": "how|welche[rsn]?"},
    "handlers.kb.ingest.chunk": {"pattern": "x"},
    "handlers.kb.ranking.asked": {
        "line": r"what is (?:[\w-]{1,40} ){0,3}(?P<property>[\w-]{1,40}) (?:of|for|in)\b"
    },
    "handlers.kb.ranking.names": {"word": "Groundhook", "name": "Groundhook"},
    "core.language.sentences": {"words": "januar|februar|märz"},
    "core.language.scripts": {"letters": "a-z"},
    "handlers.kb.reading.markdown": {"comment": "<!-- a\n b -->"},
    "toolkits.catalogue.names": {"spelling": "opening hours"},
    "handlers.web.keywords": {
        "leads": ["what is", "tell me about"],
        "endings": "(?<=[가-힣]{2})(?:에서는|에서|으로)$",
    },
    "handlers.web.unspaced": {"whole": "ab|abc", "cut": "b|c"},
    "hooks.typecheck": {"other": ["", "", "Name"]},
    "hooks.typings": {"words": "Item|Result"},
}


class Use(NamedTuple):
    """A pattern, how it is used, and where it is written."""

    pattern: re.Pattern[Any]
    methods: frozenset[str]
    line: int


def uses(name: str, path: Path) -> Iterator[Use]:
    """Yield the patterns that a module compiles, or passes to a function of `re`."""
    known = vars(import_module(f"groundhook.{name}"))
    known = known | MADE_OF.get(name, {})
    names = named(path)
    for node in ast.walk(parsed(path)):
        match node:
            case ast.Call(ast.Attribute(ast.Name("re"), called), arguments):
                pass
            case _:
                continue
        if called not in METHODS and called != "compile":
            continue
        place = METHODS.get(called, 1)
        given = {each.arg: each.value for each in node.keywords}
        flags = arguments[place] if len(arguments) > place else given.get("flags", ast.Constant(0))
        pattern = re.compile(evaluated(arguments[0], known), evaluated(flags, known))
        methods = frozenset({called})
        if called == "compile":
            methods = methods_of(names.get(id(node), ""), name) or frozenset({"finditer"})
        yield Use(pattern, methods, node.lineno)


def evaluated(node: ast.expr, known: dict[str, Any]) -> Any:
    return eval(ast.unparse(node), dict(known))


def methods_of(constant: str, module: str) -> frozenset[str]:
    """Return the methods that are called of a constant, in its module, or anywhere if it is public.
    What is done with one that is passed on is not known, so that may be anything."""
    return frozenset(
        method
        for where, name, method in constants()
        if name == constant and (where == module or not constant.startswith("_"))
    )


@cache
def constants() -> frozenset[tuple[str, str, str]]:
    """The module, the name and the method of each use of a constant that is a pattern."""
    patterns = {name for path in MODULES.values() for name in named(path).values()}
    words = re.compile(rf"\b(?:{'|'.join(sorted(patterns))})\b")
    found = set()
    for module, path in modules(*PRODUCT):
        if not words.search(path.read_text(encoding="utf-8")):
            continue
        called = set()
        names = []
        for node in ast.walk(parsed(path)):
            match node:
                case ast.Attribute(ast.Name(name), method) if name in patterns:
                    called.add(id(node.value))
                    if method in METHODS:
                        found.add((module, name, method if method in ONE_MATCH else "finditer"))
                case ast.Name(name, ast.Load()) if name in patterns:
                    names.append(node)
        found |= {(module, node.id, "finditer") for node in names if id(node) not in called}
    return frozenset(found)


def named(path: Path) -> dict[int, str]:
    """The names of a module's constants that are patterns, by the `id` of what compiles each."""
    found = {}
    for node in ast.walk(parsed(path)):
        match node:
            case ast.Assign(
                [ast.Name(name)], ast.Call(ast.Attribute(ast.Name("re"), "compile"))
            ) if name.isupper():
                found[id(node.value)] = name
    return found


MODULES = {
    name: path
    for name, path in modules(*PRODUCT)
    if re.search(r"\bre\.\w+\(", path.read_text(encoding="utf-8"))
}


# As they were once written: each stopped a server for seconds with a text of 100 kB, or would have.
SLOW = {
    "blanks before a word": (r",?\s+(?:and|und|et|y)\s+(?=how|what)", 0, "finditer"),
    "blanks across lines": (r"^\s*USER:\s*(\S.*)$", re.M, "search"),
    "two repetitions of blanks": (r"\s*([0-9]+)\s*(%?)\s*", 0, "fullmatch"),
    "a fence that nothing closes": (
        r"^ {0,3}(?P<fence>```+)[^\n]*\n(?P<body>.*?)^ {0,3}(?P=fence)[ \t]*$",
        re.M | re.S,
        "finditer",
    ),
    "a comment that nothing closes": (r'"(?:[^"\\]|\\.)*"|//[^\n]*|/\*.*?\*/', re.S, "finditer"),
    "a quotation that nothing closes": (r'"(?:[^"\\]|\\.)*"', 0, "finditer"),
    "a run that does not end the text": (r"[.:_`]+$", 0, "search"),
    "a look ahead over a run": (r"(?=\S*\d)(?=\S*[A-Z])[A-Z0-9]+", 0, "finditer"),
    "repetitions in repetitions": (r"(?:a+b?)+$", 0, "match"),
    "bytes": (rb"charset\s*=\s*[\"']?\s*([a-z]+)", 0, "search"),
}


def test_every_exemption_names_a_module_with_a_pattern() -> None:
    assert {*EXEMPT, *MADE_OF} - MODULES.keys() == set()


@pytest.mark.parametrize("kind", SLOW)
def test_a_pattern_that_takes_longer_than_its_text_grows_is_found(kind: str) -> None:
    pattern, flags, method = SLOW[kind]
    assert growth(re.compile(pattern, flags), method) is not None


@pytest.mark.parametrize("name", [name for name in MODULES if name not in EXEMPT])
def test_a_regular_expression_takes_time_in_proportion_to_its_text(name: str) -> None:
    slow = {
        f"line {use.line}: {use.pattern.pattern!r}.{method}": found
        for use in uses(name, MODULES[name])
        for method in sorted({each if each in ONE_MATCH else "finditer" for each in use.methods})
        if (found := growth(use.pattern, method))
    }
    assert slow == {}


def test_a_group_is_repeated_possessively_by_an_atomic_group() -> None:
    """Python before 3.11.5, which Debian 12 has, misses matches of `(?:ab|c)*+`, but none of
    `(?>(?:ab|c)*)`."""
    assert possessive_groups(re.compile(r"(?:[^a]|a(?!b))*+")) != []
    assert possessive_groups(re.compile(r"(?>(?:[^a]|a(?!b))*)[^a]++")) == []
    wrong = [
        f"{name}:{use.line}"
        for name, path in MODULES.items()
        if name not in EXEMPT
        for use in uses(name, path)
        if possessive_groups(use.pattern)
    ]
    assert wrong == []
