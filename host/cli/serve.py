"""`groundhook serve`: the app over HTTP."""

from __future__ import annotations

from pathlib import Path

import click

from groundhook.host.cli import options
from groundhook.host.cli.edge import execute_without_loop
from groundhook.host.cli.report import Report
from groundhook.host.config.environment import process_environment
from groundhook.host.config.packages import App, load_app
from groundhook.host.core.errors import ConfigError, HostError
from groundhook.host.core.extras import extra, install, lacking
from groundhook.host.core.server_settings import ServerSettings

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command("serve")
@options.common
@click.option("--host", metavar="H", help="Address to listen on (default: 127.0.0.1).")
@click.option("--port", type=click.IntRange(0, 65535), metavar="P", help="Port (default: 8420).")
@click.option("--workers", type=click.IntRange(1, 64), metavar="N", help="Processes (default: 1).")
@click.option("--reload", is_flag=True, help="Read the app's files again when they are saved.")
@click.option("--certificate", type=FILE, metavar="FILE", help="Certificate for https (PEM).")
@click.option("--key", "private_key", type=FILE, metavar="FILE", help="Its private key (PEM).")
def command(
    app: Path,
    host: str | None,
    port: int | None,
    workers: int | None,
    reload: bool,
    certificate: Path | None,
    private_key: Path | None,
    as_json: bool,
    debug: bool,
) -> int:
    """Serve the app over HTTP: its own API under /api, OpenAI's under /v1.

    Without configuration it listens on this machine alone, with a key that it prints. Log lines are
    on standard error. Ctrl-C lets turns under way end, and stops them after `server.drain_s`.
    """
    report = Report(json=as_json)

    def work() -> int:
        with extra("server", "serving an app over HTTP"):
            from groundhook.host.server import process
            from groundhook.host.server.asgi import settings_of

        if reload and lacking("authoring"):
            raise ConfigError("--reload needs an extra", hint=install("authoring"))
        loaded = load_app(app, process_environment())
        given = {"host": host, "port": port, "workers": workers}
        changes = {name: value for name, value in given.items() if value is not None}
        settings = settings_of(app).model_copy(update=changes)
        assistants = [id for id in sorted(loaded.packages) if _is_offered(loaded, id, settings)]

        def listening(at: process.Address) -> None:
            if as_json:
                report.line({"type": "serving", "url": at.url, "key": at.key})
            else:
                _introduce(report, at.url, at.key, assistants, openai=settings.openai.enabled)
            process.write_logs(debug=debug)

        process.serve(
            app,
            loaded.state,
            settings,
            listening,
            reload=reload,
            certificate=certificate,
            private_key=private_key,
        )
        return 0

    return execute_without_loop(work, report, debug=debug)


def _is_offered(app: App, id: str, settings: ServerSettings) -> bool:
    """Return whether clients reach an assistant; a broken one is listed, and asking it reports
    that."""
    if settings.assistants is not None:
        return id in settings.assistants
    try:
        return not app.package(id).info.get("automated")
    except HostError:
        return True


def _introduce(report: Report, url: str, key: str, assistants: list[str], *, openai: bool) -> None:
    print_ = report.out.print
    print_(f"Serving on {url}  (Ctrl-C stops it)", soft_wrap=True, highlight=False)
    if key and not openai:
        print_(f"\nKey: {key}", soft_wrap=True, highlight=False)
    elif key:
        print_("\nFor clients of OpenAI's API:", highlight=False)
        print_(f"  export OPENAI_BASE_URL={url}/v1", soft_wrap=True, highlight=False)
        print_(f"  export OPENAI_API_KEY={key}", soft_wrap=True, highlight=False)
    print_(f"\nAssistants: {', '.join(assistants) or 'none'}\n", soft_wrap=True, highlight=False)
