"""The whole job with the real components and a canary in every place where a secret can live; none gets out.

PostgreSQL is dumped and its compressed documents are opened, Redis is listened to, the logs are at level DEBUG with
uvicorn's access log on and tracebacks in them, all pages and the API are read.
"""

from __future__ import annotations

import json
import re
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
import redis
import yaml
from psycopg import sql

from tests.canaries.hunt import Canaries, Evidence, opened
from tests.real.controlplane import RealCluster
from tests.real.ports import free_port
from tests.real.product import PASSWORD, Product, deployed_command
from tests.real.services import Missing, postgresql_programs, postgresql_url, redis_of_its_own, skip
from tests.real.webhook import configuration

__all__ = ["postgresql_url"]

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

DATABASE = "canaries"
LINK = re.compile(r'(?:href|hx-get|action)="(/[^"#]*)"')


# --- what is around the product ---------------------------------------------------------------------------


@contextmanager
def echoing_extender() -> Iterator[int]:
    """Tells everybody which headers it was sent, with a status that makes it an error page."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            question = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            sent = json.dumps(dict(self.headers.items()))
            allow = question["pod"]["metadata"]["labels"].get("extender") == "allow"
            body = (
                json.dumps({"allow": True, "reason": f"you sent {sent}"}) if allow else f"<pre>{sent}</pre>"
            )
            self.send_response(200 if allow else 401)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_: object) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield int(server.server_address[1])
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture
def canaries() -> Canaries:
    return Canaries()


@pytest.fixture
def broker(canaries: Canaries) -> Iterator[tuple[str, list[str]]]:
    """A Redis with a password: its URL, and every command that it gets."""
    try:
        with redis_of_its_own() as server:
            password = canaries.new("broker password")
            with redis.Redis(port=server.port) as client:
                client.config_set("requirepass", password)
            with listening_to(server.port, password) as commands:
                yield f"redis://:{password}@127.0.0.1:{server.port}/0", commands
    except Missing as missing:
        skip(str(missing))


@contextmanager
def listening_to(port: int, password: str) -> Iterator[list[str]]:
    """Every command that a Redis gets from now on, a line each."""
    commands: list[str] = []
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(f"AUTH {password}\r\nMONITOR\r\n".encode())

        def listen() -> None:
            with suppress(OSError), connection.makefile("r", errors="replace") as lines:
                commands.extend(lines)

        threading.Thread(target=listen, daemon=True).start()
        yield commands
        connection.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def database_url(postgresql_url: str, canaries: Canaries) -> str:
    """A database of its own, with a password in its URL."""
    with psycopg.connect(postgresql_url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {DATABASE}")
    place = postgresql_url.rpartition("@")[2].rpartition("/")[0]
    return f"postgresql://test:{canaries.new('database password')}@{place}/{DATABASE}"


def policy(extender: str, canaries: Canaries, file: Path) -> dict[str, Any]:
    headers = {
        "Authorization": "Bearer ${env:EXT_TOKEN}",
        "X-From-File": f"${{file:{file}}}",
        "X-Literal": canaries.new("literal header"),
    }
    ask = {"urlPrefix": extender, "ignorable": False, "httpTimeout": "2s", "failPolicy": "Allow"}
    plugins = [
        {"name": "DefaultEvictor", "args": {}},
        {
            "name": "PodLifeTime",
            "args": {"maxPodLifeTimeSeconds": 1, "labelSelector": {"matchLabels": {"canaries": "yes"}}},
        },
        {"name": "ExternalDecision", "args": {"extender": {**ask, "httpHeaders": headers}}},
    ]
    on = {"deschedule": {"enabled": ["PodLifeTime"]}, "preevictionfilter": {"enabled": ["ExternalDecision"]}}
    head = {"apiVersion": "descheduler/v1alpha2", "kind": "DeschedulerPolicy"}
    return {**head, "profiles": [{"name": "age", "pluginConfig": plugins, "plugins": on}]}


@pytest.fixture
def product(
    real: RealCluster,
    canaries: Canaries,
    broker: tuple[str, list[str]],
    database_url: str,
    tmp_path: Path,
) -> Iterator[Product]:
    real.forget_installation()
    (tmp_path / "files").mkdir()
    header = tmp_path / "files" / "header"
    header.write_text(canaries.new("header from a file"))
    key = canaries.add(
        "SECRET_KEY", "Qk7" + canaries.new("half of SECRET_KEY") + canaries.new("rest of SECRET_KEY")
    )
    for account in ("web", "worker"):
        kubeconfig = yaml.safe_load(real.plane.kubeconfig(account).read_text())
        canaries.add(f"kubeconfig token of {account}", kubeconfig["users"][0]["user"]["token"])
    with echoing_extender() as port:
        text = yaml.safe_dump(policy(f"http://127.0.0.1:{port}", canaries, header), width=4096)
        (tmp_path / "policy.yaml").write_text(text)
        product = Product(
            tmp_path,
            environment={
                "DESCHEDUI_SECRET_KEY": key,
                "DESCHEDUI_DATABASE_URL": database_url,
                "DESCHEDUI_BROKER_URL": broker[0],
                "DESCHEDUI_POLICY_FILE": str(tmp_path / "policy.yaml"),
                "DESCHEDUI_EXTENDER_FILES": str(tmp_path / "files"),
                "DESCHEDUI_EXTENDER_HEADER_ENV": "EXT_TOKEN",
                "EXT_TOKEN": canaries.new("header from a variable"),
                "DESCHEDUI_LOG_LEVEL": "DEBUG",
                "DESCHEDUI_API_UNDO_SECONDS": "0",
            },
            kubeconfigs={account: real.plane.kubeconfig(account) for account in ("web", "worker")},
            settings={"undo_seconds": 0, "requests_per_second": 1000},
        )
        with product:
            canaries.add("API token", product.token)
            canaries.add("password", PASSWORD)
            yield product


# --- the job ----------------------------------------------------------------------------------------------


def deploy(real: RealCluster, canaries: Canaries, extender: str) -> str:
    """A Deployment whose pod is full of secrets; its namespace."""
    new, namespace = canaries.new, real.namespace()
    node = real.node()
    container = {
        "name": "main",
        "image": "registry.example/app:1",
        "command": ["app", new("command")],
        "args": [new("argument")],
        "env": [{"name": "TOKEN", "value": new("env value")}],
        "livenessProbe": {
            "httpGet": {"port": 80, "httpHeaders": [{"name": "A", "value": new("probe header")}]}
        },
    }
    applied = {"kubectl.kubernetes.io/last-applied-configuration": json.dumps({"a": new("last-applied")})}
    template = {
        "metadata": {
            "labels": {"app": "web", "canaries": "yes", "extender": extender},
            "annotations": {**applied, "vault.example/token": new("annotation")},
        },
        "spec": {
            "containers": [container],
            "nodeSelector": {"kubernetes.io/hostname": node},
            "volumes": [
                {
                    "name": "a",
                    "secret": {"secretName": "db", "items": [{"key": new("secret item"), "path": "x"}]},
                },
                {"name": "b", "csi": {"driver": "x", "volumeAttributes": {"key": new("csi attribute")}}},
            ],
        },
    }
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    real.post(
        f"/apis/apps/v1/namespaces/{namespace}/deployments", {"metadata": {"name": "web"}, "spec": spec}
    )
    real.ready_pods(namespace, 2)
    real.old_pods(namespace)
    return namespace


def register_caller(product: Product) -> str:
    """A caller whose token may stand in the path; the token."""
    code = (
        "from django.utils import timezone; from decisions.models import Cluster; "
        "from decisions.services import access; from decisions.services.actors import SYSTEM as by; "
        "now = timezone.now(); "
        "caller = access.register_caller(name='nightly', cluster=Cluster.objects.get(), path_token_allowed=True, "
        "by=by, now=now); print('token', access.issue_caller_token(caller=caller, by=by, now=now)[1])"
    )
    said = product._python("manage.py", "shell", "-v0", "-c", code)
    return str(re.findall(r"^token (\S+)$", said, re.MULTILINE)[0])


def knock(product: Product, port: int, token: str, namespace: str, pod: dict[str, Any]) -> None:
    """At every spelling of the door, also where uvicorn writes its access log."""
    body = json.dumps({"pod": pod, "node": None})
    for url in (product.url, f"http://127.0.0.1:{port}"):
        for path in (
            "/doors/{}/evict",
            "//doors//{}//evict",
            "/%64oors/{}/evict",
            "/Doors/{}/evict",
            "/doors/{}",
        ):
            httpx.post(url + path.format(token), content=body, timeout=20)
        httpx.post(
            f"{url}/doors/evict", content=body, headers={"Authorization": f"Bearer {token}"}, timeout=20
        )


def read_everything(product: Product, canaries: Canaries) -> Iterator[Evidence]:
    """Sign in, then follow every link of every page; then the API with its token."""
    with httpx.Client(base_url=product.url, follow_redirects=True, timeout=30) as browser:
        form = browser.get("/login").text
        csrf = re.findall(r'name="csrfmiddlewaretoken" value="([^"]+)"', form)[0]
        wrong = canaries.new("wrong password")
        for password in (wrong, PASSWORD):
            data = {"username": "root", "password": password, "csrfmiddlewaretoken": csrf}
            answer = browser.post("/login", data=data, headers={"Origin": product.url})
        assert "Inbox" in answer.text
        for name, value in browser.cookies.items():
            canaries.add(f"cookie {name}", value)
        yield from _crawled(browser)
    for path in ("decisions/", "cycles/", "policies/", "clusters/", "freezes/"):
        found = product.api("GET", path)
        yield f"API {path}", json.dumps(found)
        for row in found.get("results", [])[:20]:
            if "id" in row and path in {"decisions/", "cycles/", "policies/"}:
                yield f"API {path}{row['id']}", json.dumps(product.api("GET", f"{path}{row['id']}/"))


def _crawled(browser: httpx.Client) -> Iterator[Evidence]:
    waiting, seen = ["/", "/api/v1/openapi/", "/history/decisions.csv", "/history/decisions.json"], set[str]()
    while waiting and len(seen) < 80:
        address = waiting.pop(0).replace("&amp;", "&")
        if address in seen or "logout" in address or "/static/" in address:
            continue
        seen.add(address)
        answer = browser.get(address)
        yield f"page {address}", re.sub(r'name="csrfmiddlewaretoken" value="[^"]+"', "", answer.text)
        waiting += LINK.findall(answer.text)


def everything_in(database_url: str) -> Iterator[Evidence]:
    """The dump as a backup has it, and each value, compressed ones opened."""
    dump = subprocess.run(
        [str(postgresql_programs() / "pg_dump"), database_url], capture_output=True, text=True, check=False
    )
    assert dump.returncode == 0, dump.stderr
    assert "COPY public.decisions_decision" in dump.stdout
    yield "pg_dump", dump.stdout
    with psycopg.connect(database_url) as connection:
        tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
        for (table,) in tables:
            for row in connection.execute(sql.SQL("SELECT * FROM {}").format(sql.Identifier(table))):
                yield from ((f"table {table}", opened(value)) for value in row)


def break_connections(database_url: str) -> None:
    """Everybody's connection to the database ends: the next statement of each is an error with a traceback."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() "
            "AND pid <> pg_backend_pid()"
        )


def test_no_canary_gets_out(
    real: RealCluster,
    product: Product,
    canaries: Canaries,
    broker: tuple[str, list[str]],
    database_url: str,
) -> None:
    echoed, errs = deploy(real, canaries, "allow"), deploy(real, canaries, "error")
    port = free_port()
    web = deployed_command("web", **{"0.0.0.0": "127.0.0.1", "8000": str(port)})
    web.remove("--no-access-log")
    product.start("web-with-access-log", web, kubeconfig="web")
    token = canaries.add("token of a webhook's address", "wT3Jt0g6Zq9xT7vW2k4m")
    quoted = configuration(
        "canaries.deschedui.example", echoed, f"https://127.0.0.1:{free_port()}/doors/{token}/admission"
    )
    with real.webhook(quoted):
        product.run_cycle()
        (first, *_), (failed, *_) = product.decisions(echoed), product.decisions(errs)
        assert "you sent" in first["extender_reason"]
        assert failed["failure_mode"] == "http_status"
        product.api("POST", f"decisions/{first['id']}/approve/", {"version": first["version"]})
        product.wait(lambda: "webhook" in product.decision(first["id"])["message"], "the webhook's error")
    caller = canaries.add("caller token", register_caller(product))
    product.wait(
        lambda: httpx.get(f"http://127.0.0.1:{port}/livez").status_code == 200, "the second web process"
    )
    knock(product, port, caller, errs, real.pods(errs)[0])
    evidence = list(read_everything(product, canaries))
    break_connections(database_url)
    knock(product, port, canaries.new("unknown token"), errs, real.pods(errs)[0])
    product.wait(lambda: product.api("GET", "decisions/")["results"], "the database again")
    product.run_cycle()
    evidence += everything_in(database_url)
    evidence += [(path.name, path.read_text(errors="replace")) for path in product.folder.glob("*.log")]
    evidence += [("Redis", command) for command in broker[1]]
    places = {where for where, _ in evidence}
    assert {"pg_dump", "Redis", "web.log", "worker.log", "beat.log", "web-with-access-log.log"} <= places
    assert len([where for where in places if where.startswith("page")]) > 10
    assert any("Traceback" in text for where, text in evidence if where.endswith(".log"))
    assert "/doors/***/evict" in (product.folder / "web-with-access-log.log").read_text()
    assert canaries.found(evidence) == []
