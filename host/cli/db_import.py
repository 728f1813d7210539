"""`groundhook db import`: models for the tables of an existing database, or a table for a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.text import Text

from groundhook.core.errors import ConfigError
from groundhook.core.json_text import NotJson, read_json
from groundhook.host.app.host import Host
from groundhook.host.app.opening import open_host
from groundhook.host.cli import options
from groundhook.host.cli.edge import execute
from groundhook.host.cli.report import Report
from groundhook.host.cli.tables import table
from groundhook.host.config.documents import read_document

if TYPE_CHECKING:
    from groundhook.handlers.db.model.importing import Import, ImportedModel


@dataclass(frozen=True)
class _Done:
    """What became of a table. `changes` are those of its model, as `diff -u` writes them."""

    model: str
    table: str
    done: str
    note: str = ""
    changes: str = ""


@click.command("import", short_help="Write models for the tables of an existing database.")
@click.argument("source", required=False)
@click.option("--connection", default="", help="A database of `databases`, by its name.")
@click.option("--update", is_flag=True, help="Take changes of tables into their models.")
@options.common
def command(
    source: str | None, connection: str, update: bool, app: Path, as_json: bool, debug: bool
) -> int:
    """Write a model for each table and view of an existing database: columns, keys, relations from
    foreign keys and join tables, labels from names, and options of columns with few values.

    SOURCE is `sqlite:///shop.db`, `postgresql://…`, `mariadb://…` or a SQLite file; without it the
    database of the app. Where a table has changed since, the changes of its model are shown, and
    written with --update; what people wrote stays. The database is only read.
    """
    report = Report(json=as_json)

    async def work() -> int:
        async with open_host(app, tune_gc=True) as host:
            address = _address(source)
            found = await host.database.import_models(address, connection)
            done = _Writer(host, app, found, connection, update=update).write()
            known = {each.url for each in host.app.databases.values()}
        _show(done, report, update=update)
        if address and address not in known:
            key = f"databases.{connection}.url" if connection else "database.url"
            report.show(f"Set {key} in agent/agent.yml to the address of this database.")
        return 0

    return execute(work, report, debug=debug)


def _address(source: str | None) -> str | None:
    if source is None or "://" in source:
        return source
    path = Path(source)
    if not path.is_file():
        raise ConfigError(
            f"{source!r} is neither the address of a database nor a file",
            hint="sqlite:///shop.db, postgresql://user@host/database or mariadb://user@host/database",
        )
    return f"sqlite:///{path.absolute()}"


class _Writer:
    """Writes the models of an import into the folder of an app."""

    def __init__(
        self, host: Host, app: Path, found: Import, connection: str, *, update: bool
    ) -> None:
        self._host, self._app, self._found, self._update = host, app, found, update
        self._connection = {"connection": connection} if connection else {}

    def write(self) -> list[_Done]:
        done = [self._write(model) for model in self._found.models]
        left_out = (_Done("", name, "left out", why) for name, why in self._found.left_out.items())
        return [*done, *left_out]

    def _write(self, model: ImportedModel) -> _Done:
        from groundhook.handlers.db.model.updating import file_text

        if model.table in self._found.declared:
            return self._compare(model)
        path = self._app / "models" / f"{model.id}.mod.yao"
        if path.exists():
            note = f"models/{path.name} is the model of another table"
            return _Done(model.id, model.table, "left out", note)
        path.parent.mkdir(exist_ok=True)
        path.write_text(file_text({**model.content, **self._connection}), encoding="utf-8")
        return _Done(model.id, model.table, "written", "; ".join(model.notes))

    def _compare(self, model: ImportedModel) -> _Done:
        """Compare a model of the app with its table, and write it with `--update`."""
        from groundhook.handlers.db.model.updating import changes, file_text, updated

        name = self._host.app.models.files.get(model.id)
        if name is None:  # of the host's own tables
            return _Done(model.id, model.table, "as it was")
        path = self._app / name
        before: Mapping[str, Any] = read_document(path, name).data
        after = updated(before, model.content, self._found.differences[model.id])
        difference = changes(before, after, name)
        if not difference:
            return _Done(model.id, model.table, "as it was")
        if not self._update:
            return _Done(model.id, model.table, "changed", "", difference)
        try:
            read_json(path.read_text(encoding="utf-8"))
        except NotJson:
            note = f"{name} has comments, which would be lost: change it by hand"
            return _Done(model.id, model.table, "left alone", note, difference)
        path.write_text(file_text(after), encoding="utf-8")
        return _Done(model.id, model.table, "updated", "", difference)


def _show(done: list[_Done], report: Report, *, update: bool) -> None:
    if report.json:
        for each in done:
            line = {"model": each.model, "table": each.table, "done": each.done, "note": each.note}
            report.line(line | ({"changes": each.changes} if each.changes else {}))
        return
    if not done:
        report.show("The database has no tables.")
        return
    rows = [(each.model, each.table, each.done, each.note) for each in done]
    report.show(table(("model", "table", "", "note"), rows))
    for each in done:
        if each.changes:
            report.show(Text(f"\n{each.changes}"))
    if any(each.done == "changed" for each in done) and not update:
        report.show("\n`groundhook db import --update` writes these changes; labels stay.")
