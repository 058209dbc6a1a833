"""A validating webhook of the tests' own, over TLS, that answers as it is told."""

from __future__ import annotations

import base64
import http.server
import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import trustme


@contextmanager
def refusing(name: str, namespace: str, status: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The configuration of a webhook that refuses every eviction in a namespace with this status."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            response = {"uid": review["request"]["uid"], "allowed": False, "status": status}
            answer = json.dumps({**review, "request": None, "response": response}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            """Tests are quiet."""

    authority = trustme.CA()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        url = f"https://127.0.0.1:{server.server_address[1]}/"
        yield configuration(name, namespace, url, ca=authority.cert_pem.bytes())
    finally:
        server.shutdown()
        server.server_close()


def configuration(name: str, namespace: str, url: str, *, ca: bytes = b"") -> dict[str, Any]:
    """A ValidatingWebhookConfiguration for evictions in one namespace."""
    bundle = {"caBundle": base64.b64encode(ca).decode()} if ca else {}
    rule = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["CREATE"],
        "resources": ["pods/eviction"],
    }
    webhook = {
        "name": name,
        "clientConfig": {"url": url, **bundle},
        "rules": [rule],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        "failurePolicy": "Fail",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": 2,
    }
    return {"metadata": {"name": f"{name}-{namespace}"}, "webhooks": [webhook]}
