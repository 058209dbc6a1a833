"""The demo's API server, whose reads of pods hang while a file is there: `python -m tests.real.stalling_apiserver`.

`STALLS_WHILE` names that file. Whoever hangs up in between was never answered, and nothing was done.
"""

import asyncio
import os
from pathlib import Path

from deschedui.demo.apiserver import __main__ as program
from deschedui.demo.apiserver.app import App, Receive, Scope, Send


class StallingApp(App):
    """Holds back the reads of single pods: what a worker does directly after its claim."""

    stalls = Path(os.environ["STALLS_WHILE"])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        reads_a_pod = scope.get("method") == "GET" and "/pods/" in scope.get("path", "")
        while reads_a_pod and self.stalls.exists():  # noqa: ASYNC110 - a file gives no event
            await asyncio.sleep(0.05)
        await super().__call__(scope, receive, send)


if __name__ == "__main__":
    program.main(StallingApp)
