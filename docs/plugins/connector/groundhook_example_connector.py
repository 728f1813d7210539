"""A connector that repeats the question. `"type": "echo"` in connectors/<id>.conn.yao."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from groundhook.plugins import (
    ConnectorSpec,
    Delta,
    Finished,
    ModelCall,
    Plugin,
    PluginContext,
    Plugins,
    TextDelta,
)


class Echo:
    def __init__(self, prefix: str) -> None:
        self._prefix = prefix

    @asynccontextmanager
    async def stream(self, call: ModelCall, /) -> AsyncIterator[AsyncIterator[Delta]]:
        async def deltas() -> AsyncIterator[Delta]:
            yield TextDelta(self._prefix)
            yield TextDelta(call.question)
            yield Finished("stop", model="echo")

        yield deltas()


def make_echo(spec: ConnectorSpec, _: PluginContext) -> Echo:
    return Echo(str(spec.options.plugin.get("prefix", "You asked: ")))


def register(plugins: Plugins) -> None:
    plugins.connectors.add("echo", make_echo)


plugin = Plugin(register, requires=1)
