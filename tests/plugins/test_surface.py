"""The public surface: what a program and a plug-in may rely on, name by name."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import groundhook
import groundhook.documents
import groundhook.memory
import groundhook.plugins
import groundhook.sync
import groundhook.testing
from groundhook.core import errors

ROOT = Path(__file__).parents[2]
EVENTS = [
    "CitationSeen",
    "Cited",
    "DocumentsSearchCompleted",
    "DocumentsSearchStarted",
    "Event",
    "Failed",
    "HookMessage",
    "SearchComplete",
    "SearchFound",
    "SearchStart",
    "SourcesGiven",
    "StreamEnd",
    "StreamStart",
    "Text",
    "ToolProgress",
    "ToolResult",
    "ToolStart",
    "Trace",
    "TraceNode",
    "Warned",
]
NAMES = [
    "AddReport",
    "ChatMessage",
    "Feedback",
    "FileReport",
    "Host",
    "Identity",
    "Item",
    "KeptAnswer",
    "KeptCitation",
    "Message",
    "OpenChat",
    "Place",
    "Problem",
    "SearchRequest",
    "SearchResult",
    "Swap",
    "ToolInfo",
    "ToolOutcome",
    "TurnOptions",
    "Usage",
    "__version__",
    "for_readers",
    "open_host",
]
ERRORS = [
    name
    for name, value in vars(errors).items()
    if isinstance(value, type) and issubclass(value, errors.HostError)
]
PLUGINS = [
    "Block",
    "ChoosesRequests",
    "CollectionAnswer",
    "CollectionDocument",
    "CollectionMatch",
    "CollectionQuery",
    "CollectionSpec",
    "Collections",
    "Connector",
    "ConnectorSpec",
    "Delta",
    "Document",
    "DocumentField",
    "Documents",
    "Embedder",
    "EmbeddingSpec",
    "Entries",
    "Finished",
    "FollowsDeclarations",
    "Found",
    "Handler",
    "HasOwners",
    "HttpSettings",
    "Identity",
    "Item",
    "ListedDocuments",
    "Message",
    "ModelCall",
    "ModelReply",
    "ModelSpec",
    "Models",
    "Needs",
    "Owner",
    "PORT_VERSION",
    "Plugin",
    "PluginContext",
    "Plugins",
    "Progress",
    "PutReport",
    "Ranked",
    "Reader",
    "RecordQuery",
    "Records",
    "RerankSettings",
    "Reranker",
    "Scope",
    "SearchAccount",
    "Source",
    "SourceResult",
    "SyncBatch",
    "SyncRecord",
    "SyncSettings",
    "SyncSource",
    "TextDelta",
    "Tool",
    "ToolDelta",
    "ToolOutcome",
    "ToolScope",
    "Toolkit",
    "ToolkitSettings",
    "ToolkitSpec",
    "Usage",
    "WebAccess",
    "WebAnswer",
    "WebClient",
    "WebEngine",
    "WebHit",
    "WebPages",
    "WebProvider",
    "WebQuery",
    "partition",
]


def test_a_program_may_rely_on_these_names() -> None:
    assert sorted(groundhook.__all__) == sorted([*NAMES, *EVENTS, *ERRORS])
    assert all(hasattr(groundhook, name) for name in groundhook.__all__)


def test_a_plug_in_may_rely_on_these_names() -> None:
    assert sorted(groundhook.plugins.__all__) == sorted(PLUGINS)
    assert all(hasattr(groundhook.plugins, name) for name in PLUGINS)
    assert groundhook.sync.__all__ == ["Chat", "Host", "Memory", "open_host"]


def test_a_program_with_memories_may_rely_on_these_names() -> None:
    names = ["Memory", "MemoryNotFound", "Preview", "ShelvedMemory", "WholeMemory"]
    assert groundhook.memory.__all__ == names


def test_a_program_with_summaries_may_rely_on_these_names() -> None:
    names = ["RankedDocument", "RankedDocuments", "rank_documents_by_relevance"]
    assert groundhook.documents.__all__ == names


def test_a_test_of_assistants_may_rely_on_these_names() -> None:
    names = ["CannedSource", "FileEnd", "Result", "Runner", "canned_item", "open_runner"]
    assert sorted(groundhook.testing.__all__) == names
    assert all(hasattr(groundhook.testing, name) for name in names)


def test_documents_and_examples_import_public_modules_only() -> None:
    files = [*(ROOT / "docs").rglob("*.md"), *(ROOT / "docs").rglob("*.py"), ROOT / "README.md"]
    private = re.compile(
        r"\b(?:from|import) groundhook\.(?!(?:plugins|testing|sync|memory|documents)\b)"
    )
    assert [path.name for path in files if private.search(path.read_text("utf-8"))] == []


def test_the_methods_of_a_host_that_are_public_are_documented() -> None:
    for host in (groundhook.Host, groundhook.sync.Host):
        for method in ("add_documents", "assistants", "reload", "check", "search", "stream"):
            assert getattr(host, method).__doc__
    for chat in (groundhook.OpenChat, groundhook.sync.Chat):
        for method in ("send", "edit", "regenerate", "messages", "rate", "stop"):
            assert getattr(chat, method).__doc__


@pytest.mark.parametrize("from_a_wheel", [False, True])
def test_a_link_that_was_checked_out_as_a_file_is_an_error_that_says_what_to_do(
    tmp_path: Path, from_a_wheel: bool
) -> None:
    package = tmp_path / "groundhook"
    package.mkdir()
    for path in Path(groundhook.__file__).parent.glob("*.py"):
        shutil.copy(path, package)
    for name in ("core", "handlers", "hooks", "rerankers", "toolkits"):
        (package / name).mkdir()
    if not from_a_wheel:  # which has only the modules
        (package / "host").write_text("../../host", encoding="utf-8")
    program = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import groundhook.host.cli.main"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    last = done.stderr.splitlines()[-1]
    assert last.startswith("ImportError: host in ")
    assert "git config core.symlinks true" in last


def test_importing_groundhook_loads_none_of_its_modules() -> None:
    program = (
        "import sys, groundhook, groundhook.testing;"
        " print(sorted(name for name in sys.modules if name.startswith('groundhook.')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "['groundhook.testing']"


def test_lists_of_a_request_are_kept_as_tuples() -> None:
    request = groundhook.SearchRequest(type="kb", query="q", collections=["docs"])
    records = groundhook.plugins.RecordQuery(model="pen", select=["name"])
    options = groundhook.TurnOptions(connector=["first", "second"])
    assert (request.collections, records.select) == (("docs",), ("name",))
    assert options.connector == ("first", "second")
