"""Server processes: the address, the workers, the signals. `connections`
is the other module that uses uvicorn."""

from __future__ import annotations

import errno
import logging
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import psutil
import uvicorn
from uvicorn.supervisors import Multiprocess

from groundhook.core.errors import ConfigError, UsageError
from groundhook.core.server_settings import ServerSettings
from groundhook.host.server.asgi import ServerArguments, check_settings, make_app
from groundhook.host.server.connections import Connections, HttpConnection, most_connections
from groundhook.host.server.identity.caller import ALL_SCOPES
from groundhook.host.server.identity.client_addresses import is_loopback
from groundhook.host.server.identity.keys import (
    Key,
    KeyFile,
    hash_of,
    id_of,
    local_key,
    local_key_file,
)
from groundhook.host.server.identity.sign_in_link import make_link

HEADER_BYTES = 32 * 1024
LAST_RESORT_S = 5  # after `drain_s`
WORKER_S = 30  # to begin and to say that it lives; one killed meanwhile is replaced after it
BACKLOG = 2048


@dataclass(frozen=True, kw_only=True)
class ServerAddress:
    """The address of the server. `key` is the key for this machine; "" where it is not accepted,
    for the reason `why_no_key`, or where no key is needed, without a reason. `key_file` has the
    key, or had it while it was accepted; None if there is no such file. `other_keys`: there are
    keys of `groundhook keys`. `link` is the secret with which the page signs in once."""

    host: str
    port: int
    secure: bool
    key: str
    why_no_key: str = ""
    key_file: Path | None = None
    other_keys: bool = False
    link: str = ""

    @property
    def page(self) -> str:
        """The address of the page, which signs in by itself where there is a key for this machine.
        The secret is in the fragment, which browsers send nowhere."""
        return f"{self.url}/#link={self.link}" if self.link else f"{self.url}/"

    @property
    def url(self) -> str:
        """The address for clients on this machine."""
        name = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(self.host, self.host)
        name = f"[{name}]" if ":" in name and not name.startswith("[") else name
        return f"{'https' if self.secure else 'http'}://{name}:{self.port}"


def serve(
    folder: Path,
    state: Path,
    settings: ServerSettings,
    on_listening: Callable[[ServerAddress], None],
    *,
    reload: bool = False,
    certificate: Path | None = None,
    private_key: Path | None = None,
) -> None:
    """Serve the app in a folder until a signal ends the process. `on_listening` is called when
    the address is taken. Raises ConfigError when nobody could sign in, UsageError for an address
    that cannot be used, StorageError when the key for this machine cannot be stored."""
    check_settings(settings)
    local, why_not = _local_key(settings, state)
    file = local_key_file(state)
    other_keys = bool(KeyFile(state).all())
    sock = listen(settings.host, settings.port)
    key = Key(id=id_of(local), hash=hash_of(local), name="local", user="local", scopes=ALL_SCOPES)
    arguments = ServerArguments(
        folder=folder,
        host=settings.host,
        local=key if local else None,
        reload=reload,
        workers=settings.workers,
    )
    config = config_of(arguments, settings)
    if certificate is not None:
        config.ssl_certfile, config.ssl_keyfile = str(certificate), private_key and str(private_key)
    with sock:
        port = sock.getsockname()[1]
        on_listening(
            ServerAddress(
                host=settings.host,
                port=port,
                secure=certificate is not None,
                key=local,
                why_no_key=why_not,
                key_file=file if file.exists() else None,
                other_keys=other_keys,
                # Where others may use the server, what it prints may be in a journal.
                link=make_link(state, key.id)
                if local and settings.page.enabled and not other_keys
                else "",
            )
        )
        if settings.workers > 1:
            Multiprocess(config, [sock]).run()
        else:
            _run(uvicorn.Server(config), sock)


def config_of(arguments: ServerArguments, settings: ServerSettings) -> uvicorn.Config:
    """Return uvicorn's configuration for the app."""
    connections = Connections(
        most=most_connections(settings.limits.connections),
        head_s=settings.limits.head_s,
        slow_s=settings.streams.slow_s,
    )
    return uvicorn.Config(
        partial(make_app, arguments),
        factory=True,
        workers=settings.workers,
        access_log=False,
        log_config=None,
        proxy_headers=False,
        server_header=False,
        ws="none",
        http=partial(HttpConnection, connections),  # type: ignore[arg-type]
        lifespan="on",
        # A worker that does not answer is replaced; on a busy machine, one takes long to begin.
        timeout_worker_healthcheck=WORKER_S,
        timeout_graceful_shutdown=int(settings.drain_s) + LAST_RESORT_S,
        h11_max_incomplete_event_size=HEADER_BYTES,
    )


def _run(server: uvicorn.Server, sock: socket.socket) -> None:
    with suppress(KeyboardInterrupt):  # which uvicorn raises again after an orderly end
        server.run([sock])


def _local_key(settings: ServerSettings, state: Path) -> tuple[str, str]:
    """Return the key for this machine, and if it is "" the reason, unless no key is needed. Keys of
    `groundhook keys` do not end it: who added one would lose what works already. Raises ConfigError
    off loopback where nobody could sign in, StorageError."""
    auth = settings.auth
    if auth.local == "open" and is_loopback(settings.host):
        return "", ""
    if auth.keys or auth.jwt or auth.forwarded or auth.anonymous:
        return "", "`server.auth` in agent/agent.yml has the ways to sign in"
    if is_loopback(settings.host):
        return local_key(state), ""
    if KeyFile(state).all():
        return "", f"{settings.host} can be reached from other machines"
    raise ConfigError(
        f"no way to sign in is configured, and {settings.host!r} is reachable from other machines",
        hint="make a key with `groundhook keys add NAME`, or configure server.auth in"
        " agent/agent.yml",
    )


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens on the configured address. Raises UsageError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    # A restart gets the address while connections of the last process are still closing.
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((host, port))
        sock.listen(BACKLOG)
        # For the workers.
        sock.set_inheritable(True)
    except OSError as exc:
        sock.close()
        owner = _listener(family, host, port) if exc.errno == errno.EADDRINUSE else ""
        raise UsageError(
            f"{host}:{port} cannot be used: {exc.strerror}{owner}",
            hint="--port names another; `--port 0` takes a free one",
        ) from exc
    return sock


def _listener(family: socket.AddressFamily, host: str, port: int) -> str:
    """Return ` by …`, the process that listens on an address; "" where the system does not say."""
    every = "::" if family == socket.AF_INET6 else "0.0.0.0"
    with suppress(psutil.Error, OSError):
        found = {str(info[4][0]) for info in socket.getaddrinfo(host, port, family)}
        for each in psutil.net_connections("tcp"):
            listens = each.family == family and each.status == psutil.CONN_LISTEN
            if not (listens and each.pid and each.laddr) or each.laddr.port != port:
                continue
            if each.laddr.ip in found or every in (each.laddr.ip, host):
                process = psutil.Process(each.pid)
                return f" by the process {each.pid} ({process.name()}) of {process.username()}"
    return ""


def write_logs(*, debug: bool) -> None:
    """Write the server's log lines to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    for name, level in (
        ("groundhook", logging.INFO),
        ("uvicorn.error", logging.INFO if debug else logging.WARNING),
        ("opentelemetry", logging.WARNING if debug else logging.ERROR),  # traces were not sent
    ):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level)
