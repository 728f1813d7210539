"""`groundhook db import`: models for the tables of an existing database, or a table for a file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.text import Text

from groundhook.core.errors import ConfigError, IngestError, Place, UnknownName
from groundhook.core.json_text import NotJson, read_json
from groundhook.core.types.events import Warned
from groundhook.core.types.model_spec import ModelSpec
from groundhook.host.app.host import Host
from groundhook.host.app.opening import open_host
from groundhook.host.cli import options
from groundhook.host.cli.edge import execute
from groundhook.host.cli.report import Report
from groundhook.host.cli.tables import table
from groundhook.host.config.documents import read_document

FILES = frozenset({".csv", ".tsv", ".jsonl", ".ndjson", ".xlsx"})
MOST_WRONG = 20  # wrong cells that are named
MOST_NAMED = 8  # models in an example

if TYPE_CHECKING:
    from groundhook.handlers.db.model.importing import Import, ImportedModel
    from groundhook.handlers.db.model.tabular import Column, Tabular


@dataclass(frozen=True)
class _Done:
    """What became of a table. `changes` are those of its model, as `diff -u` writes them."""

    model: str
    table: str
    done: str
    note: str = ""
    changes: str = ""


@click.command("import", short_help="Write models for the tables of a database, or import a file.")
@click.argument("source", required=False)
@click.option("--connection", default="", help="A database of `databases`, by its name.")
@click.option("--update", is_flag=True, help="Take changes of tables into their models.")
@click.option("--table", "name", default="", help="File: the table's name (default: the file's).")
@click.option("--sheet", default="", help="File: the sheet of a workbook (default: the first).")
@click.option("--locale", default="", help="File: of decimals and dates, such as de or en-US.")
@click.option("--type", "types", multiple=True, help="File: a column's type, as COLUMN=TYPE.")
@click.option("--replace", is_flag=True, help="File: its rows instead of those of its table.")
@click.option("--append", is_flag=True, help="File: its rows in addition to those of its table.")
@click.option("--skip-bad", is_flag=True, help="File: cells that do not fit are left empty.")
@click.option("--dry-run", is_flag=True, help="File: show the columns, and write nothing.")
@options.common
def command(
    source: str | None,
    connection: str,
    update: bool,
    app: Path,
    as_json: bool,
    debug: bool,
    **given: Any,
) -> int:
    """Write a model for each table and view of an existing database: columns, keys, relations from
    foreign keys and join tables, labels from names, and options of columns with few values.

    SOURCE is `sqlite:///shop.db`, `postgresql://…`, `mariadb://…` or a SQLite file; without it the
    database of the app. Where a table has changed since, the changes of its model are shown, and
    written with --update; what people wrote stays. The database is only read.

    With a CSV, TSV, JSON lines or XLSX file as SOURCE, a table is made of it in the app's database,
    with its model. The types of the columns are guessed and shown; cells that do not fit are named
    by line, and then nothing is written. Again for the same file, --replace puts its rows in the
    place of the table's, and --append adds them; what people wrote in the model stays.
    """
    if given["replace"] and given["append"]:
        raise click.UsageError("--replace and --append exclude each other")
    report = Report(json=as_json)

    async def work() -> int:
        if source and Path(source).suffix.lower() in FILES:
            file = _File(Path(source), app, connection, **given)
            return await file.import_into_app(report)
        async with open_host(app, tune_gc=True) as host:
            address = _address(source)
            found = await host.database.import_models(address, connection)
            done = _Writer(host, app, found, connection, update=update).write()
            known = {each.url for each in host.app.databases.values()}
        _show(done, report, update=update)
        written = [each.model for each in done if each.done == "written"]
        if address and address not in known:
            key = f"databases.{connection}.url" if connection else "database.url"
            report.show(f"Set {key} in agent/agent.yml to the address of this database.")
        _show_use(written, report)
        return 0

    return execute(work, report, debug=debug)


def _show_use(models: Sequence[str], report: Report) -> None:
    """Say how an assistant gets new models: without it they are only files."""
    if not models:
        return
    shown = [f'"{name}"' for name in models[:MOST_NAMED]] + ["…"] * (len(models) > MOST_NAMED)
    report.show(
        "\nTo ask an assistant about them, add this to its package.yao:\n"
        f'  "db": {{ "models": [{", ".join(shown)}] }},\n'
        '  "search": { "db": { "enabled": true } }\n'
        'A hook Create that returns `search: false`, or `search_types` without "db", ends it.'
    )


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


@dataclass(frozen=True)
class _File:
    """A file that becomes a table."""

    path: Path
    app: Path
    connection: str
    name: str
    sheet: str
    locale: str
    types: Sequence[str]
    replace: bool
    append: bool
    skip_bad: bool
    dry_run: bool

    async def import_into_app(self, report: Report) -> int:
        from groundhook.handlers.db.model.refilling import known_types
        from groundhook.handlers.db.model.tabular import tabular

        table = self.name or re.sub(r"\W+", "_", self.path.stem).strip("_").lower() or "table"
        path = self.app / "models" / f"{table}.mod.yao"
        before = self._model(path)
        types = dict(one.rpartition("=")[::2] for one in self.types)
        known = known_types(before) if before else {}
        found = tabular(table, list(self._rows()), locale=self.locale, types=types, known=known)
        _show_columns(found, report)
        self._check_cells(found, report)
        if not self.dry_run:
            await self._write(found, path, before, report)
        return 0

    def _model(self, path: Path) -> Mapping[str, Any] | None:
        """Return the model of the file's table, None for a new one. Raises ConfigError for a table
        that may not be filled from the file as the command says."""
        name = f"models/{path.name}"
        if not path.exists():
            if self.replace or self.append:
                raise ConfigError(f"there is no {name}", hint="import the file without --replace")
            return None
        before: Mapping[str, Any] = read_document(path, name).data
        if not before.get("file"):
            raise ConfigError(
                f"{name} exists, and its table is not known to be of a file",
                hint="choose another name with --table",
            )
        if not (self.replace or self.append):
            raise ConfigError(
                f"{name} exists",
                hint="--replace puts the rows of the file in the place of the table's, --append"
                " adds them, --table names another table",
            )
        return before

    def _check_cells(self, found: Tabular, report: Report) -> None:
        """Show the cells that do not fit. Raises ConfigError unless they are left empty."""
        wrong = [(line, one, cell) for one in found.columns for line, cell in one.wrong]
        _show_wrong(sorted(wrong, key=lambda each: each[0]), report)
        if wrong and not self.skip_bad:
            name = wrong[0][1].content["name"]
            raise ConfigError(
                f"nothing was written: cells that do not fit their columns: {len(wrong)}",
                hint="mend them, leave them empty with --skip-bad, or read the column as text with"
                f" --type {name}=string",
            )

    async def _write(
        self, found: Tabular, path: Path, before: Mapping[str, Any] | None, report: Report
    ) -> None:
        """Write the rows, then the model."""
        from groundhook.handlers.db.model.refilling import appended, replaced, rows_to_add

        content = {**found.content, "file": self.path.name}
        if self.connection:
            content["connection"] = self.connection
        if before is not None:
            content = (appended if self.append else replaced)(before, found)
            if content != before:
                _require_plain(path, f"models/{path.name}")
        table, number, had = path.name.removesuffix(".mod.yao"), len(found.columns[0].values), 0
        spec = ModelSpec.model_validate({**content, "id": table})
        async with open_host(self.app, tune_gc=True) as host:
            if before is not None and self.append:
                had = await host.database.append_rows(
                    spec, lambda last: rows_to_add(content, found, last)
                )
            else:
                await host.database.import_rows(spec, found.rows(), anew=before is not None)
        if content != before:
            _write_model(path, content)
        if report.json:
            report.line({"model": table, "table": spec.table.name, "rows": had + number})
        added = f"{number} rows were added: " if had else ""
        report.show(
            f"\n{added}{had + number} rows are in the table {spec.table.name}, and its model in"
            f" models/{path.name}.\nAsk: groundhook search db 'how many {table}' --model {table}"
        )
        if before is None:
            _show_use([table], report)

    def _rows(self) -> Iterator[tuple[int, Mapping[str, Any]]]:
        """Yield the rows with their lines. Raises IngestError at one that cannot be read."""
        from groundhook.handlers.kb.reading.rows import file_rows

        if self.path.suffix.lower() == ".xlsx":
            yield from self._sheet_rows()
            return
        for row in file_rows(self.path):
            if row.error:
                raise IngestError(row.error, place=Place(str(self.path), row.line))
            yield row.line, row.values

    def _sheet_rows(self) -> Iterator[tuple[int, Mapping[str, Any]]]:
        from groundhook.handlers.kb.reading.packaged import sheets_of

        sheets = dict(sheets_of(_read(self.path), self.path.name, whole=True))
        if self.sheet and self.sheet not in sheets:
            raise UnknownName("sheet", self.sheet, sheets)
        filled = [name for name, cells in sheets.items() if any(map(any, cells))]
        cells = sheets[self.sheet or next(iter(filled), next(iter(sheets)))]
        heads: list[str] = []
        for number, row in enumerate(cells, 1):
            texts = [str(cell).strip() for cell in row]
            if not any(texts):
                continue
            if not heads:
                heads = [text or f"column {at}" for at, text in enumerate(texts, 1)]
                continue
            yield number, {name: _cell(cell) for name, cell in zip(heads, row, strict=False)}


def _write_model(path: Path, content: Mapping[str, Any]) -> None:
    from groundhook.handlers.db.model.updating import file_text

    path.parent.mkdir(exist_ok=True)
    path.write_text(file_text(content), encoding="utf-8")


def _require_plain(path: Path, name: str) -> None:
    """Raise ConfigError for a model with comments, which would be lost when it is written."""
    try:
        read_json(path.read_text(encoding="utf-8"))
    except NotJson as exc:
        raise ConfigError(f"{name} has comments, which would be lost: change it by hand") from exc


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as exc:
        raise IngestError(f"{str(path)!r} cannot be read: {exc.strerror or exc}") from exc


def _cell(cell: Any) -> Any:
    """Return a workbook's cell: its integers are floats there."""
    return int(cell) if isinstance(cell, float) and cell.is_integer() else cell


def _show_columns(found: Tabular, report: Report) -> None:
    shown = []
    for one in found.columns:
        example = next((str(value)[:30] for value in one.values if value is not None), "")
        empty = sum(value is None for value in one.values)
        notes = "; ".join(filter(None, [one.called, *one.notes]))
        content = one.content
        if report.json:
            report.line({"column": content, "example": example, "empty": empty, "note": notes})
        shown.append((content["name"], content["type"], example, empty or "", notes))
    report.show(table(("column", "type", "first value", "empty", "note"), shown))


def _show_wrong(wrong: Sequence[tuple[int, Column, str]], report: Report) -> None:
    for line, column, cell in wrong[:MOST_WRONG]:
        name, type = column.content["name"], column.content["type"]
        if report.json:
            report.line({"line": line, "column": name, "cell": cell})
        message = f"line {line}: {name!r} has {cell!r}, which does not fit the type {type}"
        report.warned(Warned(code="db_import_cell", message=message))
    if len(wrong) > MOST_WRONG:
        message = f"{len(wrong) - MOST_WRONG} more cells do not fit"
        report.warned(Warned(code="db_import_cell", message=message))


class _Writer:
    """Writes the models of an import into the folder of an app."""

    def __init__(
        self, host: Host, app: Path, found: Import, connection: str, *, update: bool
    ) -> None:
        self._host, self._app, self._found, self._update = host, app, found, update
        self._connection = {"connection": connection} if connection else {}

    def write(self) -> list[_Done]:
        done = [self._write(model) for model in self._found.models]
        left_out = (_Done("", name, "skipped", why) for name, why in self._found.left_out.items())
        return [*done, *left_out]

    def _write(self, model: ImportedModel) -> _Done:
        if model.table in self._found.declared:
            return self._compare(model)
        path = self._app / "models" / f"{model.id}.mod.yao"
        if path.exists():
            note = f"models/{path.name} is the model of another table"
            return _Done(model.id, model.table, "skipped", note)
        _write_model(path, {**model.content, **self._connection})
        return _Done(model.id, model.table, "written", "; ".join(model.notes))

    def _compare(self, model: ImportedModel) -> _Done:
        """Compare a model of the app with its table, and write it with `--update`."""
        from groundhook.handlers.db.model.updating import changes, updated

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
            _require_plain(path, name)
        except ConfigError as exc:
            return _Done(model.id, model.table, "left alone", exc.message, difference)
        _write_model(path, after)
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
