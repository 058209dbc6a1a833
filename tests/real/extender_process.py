"""An external extender, a process of its own: ``python -m tests.real.extender_process <port>``.

The pod's label ``extender`` says how it answers: ``allow``, ``deny``, ``slow`` (too late) or nothing at all.
"""

from __future__ import annotations

import json
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

SLOW_SECONDS = 5.0


def answer(pod: dict[str, Any]) -> dict[str, Any]:
    """What is said about a pod."""
    wanted = pod["metadata"]["labels"].get("extender", "allow")
    if wanted == "slow":
        time.sleep(SLOW_SECONDS)
    if wanted == "deny":
        return {"allow": False, "reason": "it holds the leader's lease"}
    return {"allow": True, "reason": "no objection"}


class Handler(BaseHTTPRequestHandler):
    """One question."""

    def do_POST(self) -> None:
        """Answer it; somebody who has gone meanwhile is told nothing."""
        question = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        body = json.dumps(answer(question["pod"])).encode()
        try:
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
        except OSError:
            self.close_connection = True

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Quiet."""


class Server(ThreadingHTTPServer):
    """Takes as many questions at once as a cycle asks."""

    request_queue_size = 128


if __name__ == "__main__":
    Server(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
