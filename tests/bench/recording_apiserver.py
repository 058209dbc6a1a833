"""The demo's API server, calm and empty, noting when an Eviction arrives: `python -m tests.bench.recording_apiserver`.

Takes the command line of the demo's own. `BENCH_ARRIVALS` names the file of `<seconds since 1970> <path>` lines.
"""

import asyncio
import os
import secrets
import time
from pathlib import Path

from deschedui.demo.apiserver.__main__ import arguments
from deschedui.demo.apiserver.app import App, Receive, Scope, Send
from deschedui.demo.apiserver.serving import Address, serve, write_private
from deschedui.demo.apiserver.store import Store
from deschedui.demo.controller import Controller
from deschedui.demo.samplecluster import load


class RecordingApp(App):
    """Notes an Eviction before anything is done about it."""

    arrivals = Path(os.environ["BENCH_ARRIVALS"])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope.get("method") == "POST" and scope["path"].endswith("/eviction"):
            with self.arrivals.open("a", encoding="utf-8") as file:
                file.write(f"{time.time():.6f} {scope['path']}\n")
        await super().__call__(scope, receive, send)


def main() -> None:
    """Serve until a signal ends it."""
    options, token = arguments().parse_args(), secrets.token_urlsafe(24)
    store = Store()
    load(store, empty=True)

    def ready(address: Address) -> None:
        write_private(options.kubeconfig, address.kubeconfig())
        write_private(options.ready_file, address.as_json())

    app = RecordingApp(store, {token: "demo-admin"})
    calm = Controller(store, drama=False).run
    asyncio.run(serve(app, port=options.port, token=token, ready=ready, background=calm))


if __name__ == "__main__":
    main()
