"""Running the server as a process: its socket, its certificate, and the files that tell others how to reach it."""

import asyncio
import base64
import contextlib
import json
import os
import socket
import tempfile
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvicorn
import yaml

from .app import App
from .certificate import Identity, self_signed

SHUTDOWN_SECONDS = 1
KEEP_ALIVE_SECONDS = 180  # as a real server: clients keep their connections between calls

Background = Callable[[], Coroutine[Any, Any, None]]


@dataclass(frozen=True, slots=True)
class Address:
    """How a client reaches the server: URL, bearer token, and the certificate that it must trust (PEM)."""

    url: str
    token: str
    authority: str

    def kubeconfig(self) -> str:
        """A kubeconfig that holds everything itself; its context is `demo`."""
        authority = base64.b64encode(self.authority.encode()).decode()
        cluster = {"server": self.url, "certificate-authority-data": authority}
        return yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [{"name": "demo", "cluster": cluster}],
                "users": [{"name": "demo", "user": {"token": self.token}}],
                "contexts": [{"name": "demo", "context": {"cluster": "demo", "user": "demo"}}],
                "current-context": "demo",
            },
            sort_keys=False,
        )

    def as_json(self) -> str:
        """The ready file: `url`, `token`, `certificateAuthority` and the process id."""
        told = {
            "url": self.url,
            "token": self.token,
            "certificateAuthority": self.authority,
            "pid": os.getpid(),
        }
        return json.dumps(told) + "\n"


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read; a reader sees all of it or none."""
    part = path.with_name(f"{path.name}.part")
    part.unlink(missing_ok=True)
    part.touch(mode=0o600)
    part.write_text(text)
    part.replace(path)


async def serve(
    app: App, *, port: int, token: str, ready: Callable[[Address], None], background: Background | None = None
) -> None:
    """Serve until a signal ends it, `background` beside it. Raises OSError where the port is taken."""
    identity = self_signed()
    config = _config(app, identity)
    with _listening(port) as listener:
        address = Address(f"https://127.0.0.1:{listener.getsockname()[1]}", token, identity.certificate)
        async with _beside(background):
            await _Server(config, lambda: ready(address)).serve(sockets=[listener])


def _config(app: App, identity: Identity) -> uvicorn.Config:
    """The server's settings; the key is on the disk only while TLS reads it."""
    with tempfile.TemporaryDirectory(prefix="deschedui-demo-") as folder:
        certificate, key = Path(folder, "server.crt"), Path(folder, "server.key")
        write_private(certificate, identity.certificate)
        write_private(key, identity.key)
        config = uvicorn.Config(
            app,
            ssl_certfile=certificate,
            ssl_keyfile=key,
            lifespan="off",
            ws="none",
            log_level="warning",
            access_log=False,
            timeout_graceful_shutdown=SHUTDOWN_SECONDS,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
        )
        config.load()
    return config


class _Server(uvicorn.Server):
    """A server that says when it listens and signals are caught."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready()


def _listening(port: int) -> socket.socket:
    """A socket on 127.0.0.1 that names its protocol: asyncio sets TCP_NODELAY only then (else 40 ms an answer)."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    return listener


@contextlib.asynccontextmanager
async def _beside(background: Background | None) -> Any:
    """Run the controllers while the server runs."""
    task = asyncio.create_task(background()) if background else None
    try:
        yield
    finally:
        if task:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
