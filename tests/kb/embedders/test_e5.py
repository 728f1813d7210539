"""The bundled model's two engines: the same vectors, and what happens where one of them cannot be
used."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groundhook.handlers.kb.embedders.e5.engine import E5Engine, load_engine, weights_file
from groundhook.handlers.kb.embedders.e5.file import (
    DamagedWeights,
    ModelFile,
    UnknownWeights,
    open_model,
)
from groundhook.handlers.kb.embedders.e5.session import Arithmetic, E5Session
from tests.kb.embedders.make_encoder import FOLDER, graph

ROOT = Path(__file__).parents[3]
TEXTS = [
    "How hot should the water for green tea be?",
    "Green tea is brewed with water of eighty degrees; black tea with boiling water.",
    "השער נעול בלילה, ומי שמאחר צריך להתקשר.",
    "门在晚上是锁着的。",
    "كمثرى ناضجة",
    "ᚠᛇᚻ᛫ᛒᛦᚦ᛫ᚠᚱᚩᚠᚢᚱ",  # in no piece of the vocabulary
    "def f(x): return x + 1",
    " ".join(str(number) for number in range(270)),  # more than one window
]


@cache
def file() -> ModelFile:
    return open_model(weights_file())


@cache
def session(arithmetic: Arithmetic) -> E5Session:
    return E5Session(file(), arithmetic)


@cache
def small() -> E5Engine:
    return load_engine(small=True).engine


@pytest.mark.parametrize(("arithmetic", "least"), [("int8", 0.99), ("exact", 0.9998)])
def test_both_engines_give_nearly_the_same_vectors(arithmetic: Arithmetic, least: float) -> None:
    for text in TEXTS:
        for kind in ("query", "passage"):
            one, other = getattr(session(arithmetic), kind)(text), getattr(small(), kind)(text)
            assert float(one @ other) >= least, (kind, text)


@given(st.text(max_size=60) | st.lists(st.sampled_from(TEXTS)).map(" \n".join))
@settings(deadline=None)
def test_both_engines_count_the_same_tokens(text: str) -> None:
    text = text.replace("\0", "").encode(errors="replace").decode()
    assert session("int8").token_count(text) == small().token_count(text)


def test_a_word_without_end_is_counted() -> None:
    assert session("int8").token_count("梨" * 100_000) > 50_000


@pytest.mark.parametrize("arithmetic", ["int8", "exact"])
def test_the_graphs_are_those_that_the_script_makes(arithmetic: Arithmetic) -> None:
    kept = FOLDER.joinpath(f"encoder-{arithmetic}.onnx").read_bytes()
    assert kept == graph(arithmetic).SerializeToString(deterministic=True)


def test_vectors_made_at_the_same_time_are_those_made_alone() -> None:
    alone = [session("int8").passage(text) for text in TEXTS]
    with ThreadPoolExecutor(4) as threads:
        beside = list(threads.map(session("int8").passage, TEXTS))
    assert all(np.array_equal(one, other) for one, other in zip(alone, beside, strict=True))


# --------------------------------------------------------------------------- what may be wrong


@pytest.mark.parametrize("size", [0, 3, 100, 5_000, 4_700_000])
def test_weights_that_are_cut_off_are_refused_with_their_file(tmp_path: Path, size: int) -> None:
    cut = tmp_path / "weights.bin"
    with weights_file().open("rb") as whole:
        cut.write_bytes(whole.read(size))
    with pytest.raises(DamagedWeights, match=r"weights\.bin"):
        open_model(cut)


def other_version(folder: Path) -> Path:
    """Return a complete file of weights that differs from the known one in a bit."""
    other = folder / "weights.bin"
    data = bytearray(weights_file().read_bytes())
    data[-1] ^= 1
    other.write_bytes(data)
    return other


def test_weights_of_another_version_are_distinguished_from_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(UnknownWeights, match="another version"):
        E5Session(open_model(other_version(tmp_path)))


def test_a_file_that_is_something_else_is_refused(tmp_path: Path) -> None:
    other = tmp_path / "weights.bin"
    other.write_bytes(b"PK\x03\x04" + bytes(range(256)) * 64)
    with pytest.raises(DamagedWeights, match="E5S1"):
        open_model(other)


QUIET = """
import anyio
from groundhook.handlers.kb.embedders.builtin import BuiltinEmbedder

anyio.run(BuiltinEmbedder().embed_query, "pear")
"""


def test_the_runtime_keeps_no_identifier_of_the_machine_and_writes_nothing_at_home(
    tmp_path: Path,
) -> None:
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    subprocess.run([sys.executable, "-c", QUIET], env=environment, check=True, cwd=ROOT)
    assert list(tmp_path.iterdir()) == []


NO_RUNTIME = 'sys.modules["onnxruntime"] = None'
OTHER_WEIGHTS = """
from groundhook.handlers.kb.embedders.e5 import engine
engine.weights_file = lambda: Path(sys.argv[1])
"""
BROKEN_RUNTIME = """
class Broken:
    def find_spec(self, name, *more):
        if name == "onnxruntime":
            raise OSError("libgomp.so.1: cannot open shared object file")

sys.meta_path.insert(0, Broken())
"""
WITHOUT = """
import anyio
from groundhook.core.trace import recording
from groundhook.handlers.kb.embedders.builtin import BuiltinEmbedder

async def main():
    nodes = []
    model = BuiltinEmbedder()
    with recording(nodes.append):
        for _ in range(2):
            print(len(await model.embed_query("pear")))
    print([(node.type, node.status, node.data) for node in nodes if node.status != "running"])
    print(await model.fallback())

anyio.run(main)
"""


@pytest.mark.parametrize(
    ("cause", "told"),
    [
        (NO_RUNTIME, "onnxruntime cannot be loaded"),
        (BROKEN_RUNTIME, "onnxruntime cannot be loaded: libgomp.so.1: cannot open"),
        (OTHER_WEIGHTS, "its weights are of another version"),
    ],
)
def test_without_the_runtime_or_the_known_weights_the_small_engine_embeds_as_the_trace_shows_once(
    tmp_path: Path, cause: str, told: str
) -> None:
    other = other_version(tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", f"import sys\nfrom pathlib import Path\n{cause}\n{WITHOUT}", other],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    first, second, nodes, reason = done.stdout.splitlines()
    assert (first, second) == ("384", "384")
    assert nodes.count("embedding_engine") == 1
    assert told in nodes
    assert "small engine" in reason


APP_WITHOUT = """
import sys
sys.modules["onnxruntime"] = None
import anyio
from groundhook import open_host

async def main():
    async with open_host(sys.argv[1], environment={}) as host:
        report = await host.kb.add("docs", [__import__("pathlib").Path(sys.argv[1], "a.txt")])
        print(report.notes)
        print([(each.severity, each.message, each.hint) for each in await host.check()])

anyio.run(main)
"""


@pytest.mark.parametrize("small", [False, True])
def test_adding_and_check_report_the_fallback_where_the_small_engine_was_not_chosen(
    tmp_path: Path, small: bool
) -> None:
    for name, text in {
        "kb/docs.kb.yao": "{}",
        "a.txt": "a ripe pear",
        "agent/agent.yml": f"kb_storage:\n  idle_s: 1\n  small_embedder: {str(small).lower()}\n",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", APP_WITHOUT, str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    notes, problems = done.stdout.splitlines()
    assert ("onnxruntime cannot be loaded" in notes) != small
    assert ("onnxruntime cannot be loaded" in problems) != small
    assert ("('warning'" in problems) != small


UNUSABLE = """
import sys
from pathlib import Path
import anyio
from groundhook import open_host
from groundhook.handlers.kb.embedders.e5 import engine

BREAK

async def main():
    app = Path(sys.argv[1])
    async with open_host(app, environment={}) as host:
        print([(each.severity, each.message, each.hint) for each in await host.check()])
        found = await host.search({"type": "kb", "query": "pear", "collections": ["docs"]})
        print(found.error)

anyio.run(main)
"""


CUT_OFF = """
engine.weights_file = lambda: Path(sys.argv[1], "weights.bin")
"""
NO_LIBRARIES = f"""
{NO_RUNTIME}
def fails():
    raise OSError("libgomp.so.1: cannot open shared object file")

engine._small = fails
"""


@pytest.mark.parametrize("small", [False, True])
@pytest.mark.parametrize(
    ("cause", "told"),
    [(CUT_OFF, "is truncated: it has 5,000,000 of"), (NO_LIBRARIES, "libgomp.so.1: cannot open")],
)
def test_an_app_whose_model_cannot_be_used_is_told_why_and_how_to_install_it_again(
    tmp_path: Path, small: bool, cause: str, told: str
) -> None:
    for name, text in {
        "kb/docs.kb.yao": "{}",
        "agent/agent.yml": f"kb_storage:\n  idle_s: 1\n  small_embedder: {str(small).lower()}\n",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    with weights_file().open("rb") as whole:
        (tmp_path / "weights.bin").write_bytes(whole.read(5_000_000))
    done = subprocess.run(
        [sys.executable, "-c", UNUSABLE.replace("BREAK", cause), str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    for shown in done.stdout.splitlines():  # by `check`, and by a search
        assert "the bundled embedding model cannot be used" in shown
        assert told in shown
        assert "install it again" in shown
