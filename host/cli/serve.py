"""`groundhook serve`: the app over HTTP."""

from __future__ import annotations

import json
import shlex
import webbrowser
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from groundhook.core.errors import ConfigError
from groundhook.core.extras import extra, install, lacking
from groundhook.core.server_settings import ServerSettings
from groundhook.host.cli import options
from groundhook.host.cli.edge import execute_without_loop
from groundhook.host.cli.report import Report
from groundhook.host.config.env_file import app_environment
from groundhook.host.config.introduction import first_assistant, first_question, package_info
from groundhook.host.config.packages import App, load_app

if TYPE_CHECKING:
    from groundhook.host.server import process

YOUR_KEY = "$OPENAI_API_KEY"
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command("serve")
@options.common
@click.option("--host", metavar="H", help="Address to listen on (default: 127.0.0.1).")
@click.option("--port", type=click.IntRange(0, 65535), metavar="P", help="Port (default: 8420).")
@click.option("--workers", type=click.IntRange(1, 64), metavar="N", help="Processes (default: 1).")
@click.option("--reload", is_flag=True, help="Read the app's files again when they are saved.")
@click.option("--open-browser", is_flag=True, help="Open the page in a browser.")
@click.option("--certificate", type=FILE, metavar="FILE", help="Certificate for https (PEM).")
@click.option("--key", "private_key", type=FILE, metavar="FILE", help="Its private key (PEM).")
def command(
    app: Path,
    host: str | None,
    port: int | None,
    workers: int | None,
    reload: bool,
    open_browser: bool,
    certificate: Path | None,
    private_key: Path | None,
    as_json: bool,
    debug: bool,
) -> int:
    """Serve the app over HTTP: a page to chat on, its own API under /api, OpenAI's under /v1.

    Without configuration it listens on this machine alone, with a key that it prints and keeps.
    Log lines are on standard error: `ready` is one when everything is loaded. Ctrl-C lets turns
    under way end, and stops them after `server.drain_s`.
    """
    report = Report(json=as_json)

    def work() -> int:
        with extra("server", "serving an app over HTTP"):
            from groundhook.host.server import process
            from groundhook.host.server.asgi import settings_of

        if reload and lacking("authoring"):
            raise ConfigError("--reload needs an extra", hint=install("authoring"))
        loaded = load_app(app, app_environment(app))
        given = {"host": host, "port": port, "workers": workers}
        changes = {name: value for name, value in given.items() if value is not None}
        settings = settings_of(app).model_copy(update=changes)
        assistants = [id for id in sorted(loaded.packages) if _is_offered(loaded, id, settings)]

        def listening(at: process.ServerAddress) -> None:
            if as_json:
                page = {"page": at.page} if settings.page.enabled else {}
                report.line({"type": "serving", "url": at.url, "key": at.key, **page})
            else:
                _introduce(report, at, loaded, assistants, settings)
            # After the introduction, which log lines of the start would interrupt.
            process.write_logs(debug=debug)
            if open_browser and not webbrowser.open(at.page):
                report.err.print("no browser could be opened; open the page yourself")

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
    return not package_info(app, id).get("automated")


def _introduce(
    report: Report,
    at: process.ServerAddress,
    app: App,
    assistants: list[str],
    settings: ServerSettings,
) -> None:
    """Print where the server is, and a request to each of its APIs as it is typed. A line is never
    wrapped: it is there to be copied."""

    def show(*lines: str) -> None:
        for line in lines:
            report.out.print(line, soft_wrap=True, highlight=False, markup=False)

    show(f"Serving on {at.url}  (Ctrl-C stops it)")
    if settings.page.enabled:
        show(f"\nThe page:  {at.page}")
        if at.link:
            show("  (it signs one browser in, within an hour; the key below does at any time)")
    show(f"\nAssistants: {', '.join(assistants) or 'none'}")
    if at.why_no_key and at.key_file is not None:
        show(f"\nThe key for this machine, {at.key_file}, is not accepted: {at.why_no_key}")
    # With a key where no visitor may ask anything.
    public = [id for id in assistants if package_info(app, id).get("public")]
    needs_key = bool(at.key or (at.why_no_key and not (settings.auth.anonymous and public)))
    assistant = first_assistant(app, assistants if needs_key or not at.why_no_key else public)
    if assistant is not None:
        question = first_question(app, assistant)
        key = _key_in_shell(at) if needs_key else ""
        show(*_requests(at.url, assistant, question, key, openai=settings.openai.enabled))


def _requests(url: str, assistant: str, question: str, key: str, *, openai: bool) -> Iterator[str]:
    """Yield requests as they are typed, with a key as a shell has it; "": none is needed."""
    body = shlex.quote(json.dumps({"assistant": assistant, "text": question}, ensure_ascii=False))
    header = f' -H "Authorization: Bearer {key}"' if key else ""
    if key == YOUR_KEY:
        yield (
            "\nRequests need a key: `groundhook keys add NAME` makes one, and shows it once."
            " With the key in the variable OPENAI_API_KEY:"
        )
    yield "\nAn answer as a stream of events:"
    yield f"  curl -N {url}/api/turns{header} -H 'Content-Type: application/json' -d {body}"
    if openai:
        yield "\nFor clients of OpenAI's API:"
        yield f"  export OPENAI_BASE_URL={url}/v1"
        if key != YOUR_KEY:
            yield f"  export OPENAI_API_KEY={key or 'none'}"
        yield "\nIn Python (pip install openai):"
        yield "  from openai import OpenAI"
        yield f"  messages = [{{'role': 'user', 'content': {question!r}}}]"
        yield (
            "  print(OpenAI().chat.completions.create("
            f"model={assistant!r}, messages=messages).choices[0].message)"
        )
    yield ""


def _key_in_shell(at: process.ServerAddress) -> str:
    """Return the key as a command has it. Where the app has other keys, others may use the server,
    and what it prints may be in a journal: the command reads the key from its file."""
    if not at.key:
        return YOUR_KEY
    return f"$(cat {shlex.quote(str(at.key_file))})" if at.other_keys else at.key
