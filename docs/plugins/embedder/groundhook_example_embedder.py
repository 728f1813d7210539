"""An embedding provider that counts letters. `"embedding": {"provider": "letters"}`."""

from collections.abc import Sequence
from math import hypot

from groundhook.plugins import EmbeddingSpec, Plugin, PluginContext, Plugins

LETTERS = "abcdefghijklmnopqrstuvwxyz"


class Letters:
    provider, model, dimensions = "letters", "letters-1", len(LETTERS)

    async def embed_query(self, text: str, /) -> list[float]:
        return _vector(text)

    async def embed_documents(self, texts: Sequence[str], /) -> list[list[float]]:
        return [_vector(text) for text in texts]

    def similarity(self, cosine: float, /) -> float:
        return max(0.0, cosine)


def _vector(text: str) -> list[float]:
    """How often each letter occurs, as a vector of length 1."""
    counts = [float(text.lower().count(letter)) for letter in LETTERS]
    length = hypot(*counts) or 1.0
    return [count / length for count in counts] if any(counts) else [1.0, *[0.0] * 25]


def make_letters(_: EmbeddingSpec, __: PluginContext) -> Letters:
    return Letters()


def register(plugins: Plugins) -> None:
    plugins.embedders.add("letters", make_letters)


plugin = Plugin(register, requires=1)
