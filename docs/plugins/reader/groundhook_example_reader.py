"""A document reader for files that end with .log: one paragraph for each line."""

from pathlib import PurePath

from groundhook import IngestError
from groundhook.plugins import Block, Document, Plugin, Plugins


def read_log(data: bytes, name: str) -> Document:
    try:
        text = data.decode()
    except UnicodeDecodeError as exc:
        raise IngestError(f"{name!r} was not added: it is not UTF-8") from exc
    blocks, start = [], 0
    for line in text.splitlines(keepends=True):
        blocks.append(Block("paragraph", start, start + len(line)))
        start += len(line)
    return Document(title=PurePath(name).stem, text=text, blocks=tuple(blocks))


def register(plugins: Plugins) -> None:
    plugins.readers.add(".log", read_log)


plugin = Plugin(register, requires=1)
