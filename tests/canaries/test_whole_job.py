"""The whole job with a canary in every place where a secret can live: none in what is kept, shown, logged or mailed.

In one process, on the tests' database; ``tests/real/test_canaries.py`` does it with the real components.
"""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from django.conf import settings
from django.core import mail
from django.http import HttpRequest, HttpResponse
from django.test import Client, override_settings
from django.urls import include, path

from decisions.doors.asgi import with_doors
from decisions.models import Caller, Cluster, Decision, DecisionEvent, PolicyVersion, Role, Snapshot
from decisions.services import access, carryout
from decisions.services.actors import SYSTEM
from deschedui.extender.client import ExtenderClient
from deschedui.extender.config import ExtenderArgs
from deschedui.extender.files import FileRules
from tests.api.clients import Api, token_of
from tests.builders import make_user
from tests.canaries.hunt import Canaries, Evidence, database, logs
from tests.domain.cycle_world import Clock, Runs, World, extender_args, old_pod, policy_text
from tests.domain.fake_cluster import FakeClock, FakeCluster, a_pod, status, using
from tests.doors.edges import FakePod, ask, pod_body

pytestmark = pytest.mark.django_db(transaction=True)

NOW = datetime.now(UTC)
OLD = NOW - timedelta(hours=30)


# --- a pod that is full of secrets ------------------------------------------------------------------------


def full_of_secrets(canaries: Canaries, name: str) -> dict[str, Any]:
    """A pod with a canary wherever somebody may have put a secret."""
    new = canaries.new
    pod = old_pod(name, now=NOW)
    pod["metadata"]["annotations"] = {
        "kubectl.kubernetes.io/last-applied-configuration": json.dumps({"x": new("last-applied")}),
        "vault.example/token": new("annotation"),
    }
    pod["metadata"]["managedFields"] = [{"manager": new("managedFields")}]
    probe = {"httpGet": {"path": "/", "httpHeaders": [{"name": "A", "value": new("probe header")}]}}
    pod["spec"]["containers"] = [
        {
            "name": "main",
            "image": "registry.example/app:1",
            "command": ["app", f"--key={new('command')}"],
            "args": ["--password", new("argument")],
            "env": [{"name": "TOKEN", "value": new("env value")}],
            "envFrom": [{"secretRef": {"name": "db"}, "prefix": new("env prefix")}],
            "livenessProbe": probe,
            "lifecycle": {"preStop": {"exec": {"command": ["sh", "-c", new("lifecycle")]}}},
        }
    ]
    pod["spec"]["initContainers"] = [{"name": "init", "args": [new("init argument")]}]
    pod["spec"]["ephemeralContainers"] = [{"name": "debug", "command": [new("ephemeral command")]}]
    pod["spec"]["volumes"] = [
        {"name": "csi", "csi": {"driver": "x", "volumeAttributes": {"secret": new("csi attribute")}}},
        {
            "name": "secret",
            "secret": {"secretName": "db", "items": [{"key": new("secret item"), "path": "x"}]},
        },
        {"name": "flex", "flexVolume": {"driver": "x", "options": {"password": new("flex option")}}},
        {"name": "iscsi", "iscsi": {"targetPortal": "x", "initiatorName": new("iscsi")}},
    ]
    ended = {"terminated": {"reason": "Error", "exitCode": 1, "message": new("termination message")}}
    waiting = {
        "waiting": {"reason": "ErrImagePull", "message": f"https://me:{new('pull error')}@registry/app"}
    }
    pod["status"]["containerStatuses"] = [{"name": "main", "state": waiting, "lastState": ended}]
    return pod


# --- extenders that tell what they were sent --------------------------------------------------------------


@dataclass
class EchoingExtender:
    """Repeats the headers that it got, each pod in another way."""

    rules: FileRules
    heard: list[dict[str, str]] = field(default_factory=list)

    def factory(self, extenders: Sequence[ExtenderArgs]) -> ExtenderClient:
        return ExtenderClient(extenders, files=self.rules, transport=httpx.MockTransport(self._answer))

    async def _answer(self, request: httpx.Request) -> httpx.Response:
        name = json.loads(await request.aread())["pod"]["metadata"]["name"]
        sent = dict(request.headers)
        self.heard.append(sent)
        every = ", ".join(sent.values())
        match name:
            case "echo-denies":
                return httpx.Response(200, json={"allow": False, "reason": f"you sent {every}"})
            case "echo-errors":
                return httpx.Response(200, json={"allow": True, "error": f"bad headers: {json.dumps(sent)}"})
            case "echo-status":
                return httpx.Response(401, text=f"<pre>{every}</pre>", headers={"Location": f"/x/{every}"})
            case "echo-broken":
                raise httpx.ConnectError(f"refused {every}")
        return httpx.Response(200, json={"allow": True, "reason": f"fine: {every}"})


PODS = ("echo-denies", "echo-errors", "echo-status", "echo-broken", "echo-allows")


# --- the job ----------------------------------------------------------------------------------------------


@dataclass
class Job:
    """Everything that happens, and everything that is left of it."""

    canaries: Canaries
    cluster: Cluster
    folder: Path
    pages: list[Evidence] = field(default_factory=list)
    extender: EchoingExtender | None = None

    # a policy and a cycle

    def run_cycle(self) -> None:
        new = self.canaries.new
        (self.folder / "header").write_text(new("header from a file"))
        basic = base64.b64encode(f"ext:{self.canaries.new('basic password')}".encode()).decode()
        headers = {
            "Authorization": "Bearer ${env:EXT_TOKEN}",
            "X-From-File": f"${{file:{self.folder / 'header'}}}",
            "X-Literal": new("literal header"),
            "Proxy-Token": f"Basic {self.canaries.add('basic header', basic)}",
        }
        self.extender = EchoingExtender(
            FileRules(
                env_allow=frozenset({"EXT_TOKEN"}),
                file_allow=(self.folder,),
                environment={"EXT_TOKEN": new("header from a variable")},
            )
        )
        world = World(pods=[full_of_secrets(self.canaries, name) for name in PODS])
        runs = Runs(self.cluster, self.folder, world=world, clock=Clock(NOW))
        runs.extender = self.extender  # type: ignore[assignment]  # it has the one method that is used
        runs.policy(policy_text(extender=extender_args(failPolicy="Allow", httpHeaders=headers)))
        runs.run()
        bad = extender_args(
            urlPrefix=f"https://me:{new('url password')}@x/?a={new('url query')}", httpHeaders=headers
        )
        runs.policy(policy_text(extender=bad))
        runs.run()

    # people

    def sign_in(self) -> Client:
        password = self.canaries.new("password")
        make_user("root", Role.ADMIN)
        user = make_user("ada", Role.ADMIN)
        user.set_password(password)
        user.save()
        client = Client(enforce_csrf_checks=True)
        wrong = {"username": "ada", "password": self.canaries.new("wrong password")}
        self._post(client, "/login", wrong, page="/login")
        self._post(client, "/login", {"username": "ada", "password": password}, page="/login")
        self.canaries.add("session cookie", client.cookies[settings.SESSION_COOKIE_NAME].value)
        self.canaries.add("CSRF cookie", client.cookies[settings.CSRF_COOKIE_NAME].value)
        return client

    def _post(self, client: Client, address: str, data: dict[str, Any], *, page: str) -> HttpResponse:
        shown = client.get(page).content.decode()
        found = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', shown)
        token = found[1] if found else ""
        return client.post(address, {**data, "csrfmiddlewaretoken": token})  # type: ignore[return-value]

    def look_at_everything(self, client: Client) -> None:
        addresses = [
            "/",
            "/history/",
            "/cycles/",
            "/policy/",
            "/extenders/",
            "/settings/",
            "/api/v1/openapi/",
        ]
        addresses += ["/history/decisions.csv", "/history/decisions.json", "/healthz", "/livez"]
        addresses += [f"/d/{row.pk}/" for row in Decision.objects.all()]
        addresses += [f"/d/{row.pk}/why" for row in Decision.objects.all()]
        addresses += [f"/cycles/{pk}/" for pk in (1, 2)]
        addresses += [f"/policy/?version={row.number}" for row in PolicyVersion.objects.all()]
        for address in addresses:
            answer = client.get(address)
            self.pages.append((f"page {address}", _content(answer)))

    def answer_questions(self, client: Client) -> None:
        for row in Decision.objects.filter(verdict="pending"):
            data = {"version": row.version, "confirmed": 1}
            self._post(client, f"/d/{row.pk}/approve", data, page="/")

    # programs

    def call_the_api(self) -> None:
        user = make_user("robot", Role.ADMIN)
        token = self.canaries.add("API token", token_of(user, "read", "decide"))
        api = Api(token)
        rows = [f"decisions/{row.pk}/" for row in Decision.objects.all()]
        for each in [
            "decisions/",
            "cycles/",
            "policies/",
            "clusters/",
            "freezes/",
            "cycles/1/",
            "policies/1/",
            *rows,
        ]:
            answer = api.get(each)
            self.pages.append((f"API {each}", _content(answer)))
        wrong = self.canaries.new("unknown API token")
        self.pages.append(("API 401", _content(Api(wrong).get("decisions/"))))
        self.pages.append(("API 400", _content(api.post("decisions/1/deny/", {"nonsense": 1}))))

    def knock_at_doors(self) -> None:
        caller = access.register_caller(
            name="nightly", cluster=self.cluster, path_token_allowed=True, by=SYSTEM, now=NOW
        )
        _, bearer = access.issue_caller_token(caller=caller, by=SYSTEM, now=NOW)
        _, in_path = access.issue_caller_token(caller=caller, by=SYSTEM, now=NOW)
        self.canaries.add("caller token", bearer)
        self.canaries.add("path token", in_path)
        ask(bearer, now=NOW, pod=FakePod())
        for token in (in_path, self.canaries.new("unknown path token")):
            for shape in ("/doors/{}/evict", "//doors//{}/evict/", "/doors/{}/nonsense", "/Doors/{}/evict"):
                self._by_http(shape.format(token), token)

    def _by_http(self, address: str, token: str) -> None:
        """Through the application as a server would; the door is one that fails and quotes what it was asked."""

        def fails(knock: Any, body: bytes, *, now: datetime) -> dict[str, Any]:
            raise RuntimeError(f"cannot answer {address}: {knock!r} with token dui_{token}")

        async def ended(_scope: Any, _receive: Any, send: Any) -> None:
            logging.getLogger("django.request").warning("Not Found: %s", address)

        async def call() -> list[Any]:
            sent: list[Any] = []

            async def receive() -> Any:
                return {"type": "http.request", "body": pod_body()}

            async def send(message: Any) -> None:
                sent.append(message)

            scope = {"type": "http", "method": "POST", "path": address, "headers": [(b"host", b"testserver")]}
            await with_doors(ended, door=fails)(scope, receive, send)
            return sent

        self.pages.append((f"answer of {address[:7]}", str(asyncio.run(call())).replace("path token", "")))

    # evictions

    def carry_out(self) -> None:
        """The API server quotes the address of a webhook, which is one of our doors."""
        token = self.canaries.new("token in a webhook's address")
        url = f"https://d.example/doors/{token}/admission?timeout=5s"
        texts = [
            (500, f'Internal error occurred: failed calling webhook "w.example": Post "{url}": EOF'),
            (403, f'admission webhook "w.example" denied the request: see {url}'),
            (429, f'admission webhook "w.example" denied the request: {url.replace("/", "%2F")}'),
            (400, f"bad thing at {url} with Authorization: Bearer {self.canaries.new('bearer in an answer')}"),
        ]  # fmt: skip
        fake = FakeCluster(script=[status(code, "X", text) for code, text in texts])
        fake.add_owner(desired=5, ready=5)
        for row in Decision.objects.filter(eviction="queued"):
            fake.add(a_pod(row.pod_name, uid=row.pod_uid))
        Decision.objects.filter(eviction="queued").update(not_before=None)
        with using(fake):
            carryout.carry_out(self.cluster.pk, worker="w1", clock=FakeClock(NOW + timedelta(minutes=1)))
        assert len(fake.sent) == len(texts), "each answer was given once"


def _content(answer: Any) -> str:
    body = b"".join(answer.streaming_content) if answer.streaming else answer.content
    return f"{dict(answer.items())} {body.decode('utf-8', 'replace')}"


@pytest.fixture
def canaries() -> Canaries:
    found = Canaries()
    found.add("SECRET_KEY", settings.SECRET_KEY)
    return found


@pytest.fixture
def job(canaries: Canaries, cluster: Cluster, tmp_path: Path) -> Job:
    return Job(canaries, cluster, tmp_path)


def broker() -> Iterable[Evidence]:
    folder = Path(settings.ENV.broker_url.removeprefix("filesystem://"))
    for file in folder.rglob("*"):
        if file.is_file():
            text = file.read_text(errors="replace")
            yield "broker", text
            for part in re.findall(r'"body": "([A-Za-z0-9+/=]+)"', text):
                yield "broker", base64.b64decode(part).decode(errors="replace")


def test_no_canary_gets_out(job: Job) -> None:
    with logs() as lines:
        job.run_cycle()
        client = job.sign_in()
        job.look_at_everything(client)
        job.answer_questions(client)
        job.carry_out()
        job.knock_at_doors()
        job.call_the_api()
        job.look_at_everything(client)
        logging.getLogger("x").warning("a key: %s", settings.SECRET_KEY)
    assert job.extender
    assert any("x-literal" in heard for heard in job.extender.heard)
    assert Snapshot.objects.count() >= len(PODS)
    assert DecisionEvent.objects.count() > 2 * len(PODS)
    assert Caller.objects.exists()
    assert len(lines) > 20
    assert "you sent" in str(job.pages)
    assert "failed calling webhook" in str(job.pages)
    evidence = [*database(), *broker(), *job.pages, *(("log", line) for line in lines)]
    assert job.canaries.found(evidence) == []


# --- errors of ours ---------------------------------------------------------------------------------------


def breaks(request: HttpRequest) -> HttpResponse:
    """A view with an error that quotes everything, and secrets in its variables."""
    token = request.headers["Authorization"]
    posted = dict(request.POST.items())
    raise ValueError(f"cannot take {request.path} with {token} {posted.get('csrfmiddlewaretoken')}")


urlpatterns = [
    path("breaks", breaks),
    path("Doors/<path:rest>", lambda request, rest: breaks(request)),
    path("", include("deschedui.urls")),
]


@pytest.mark.parametrize("debug", [False, True], ids=["mail", "debug page"])
@pytest.mark.parametrize("address", ["/breaks", "/Doors/{}/evict"])
def test_the_report_of_an_error_has_none(canaries: Canaries, address: str, *, debug: bool) -> None:
    client = Client(raise_request_exception=False)
    headers = {
        "Authorization": f"Bearer {canaries.new('bearer')}",
        "X-Api-Key": canaries.new("key header"),
        "X-Anything": canaries.new("other header"),
        "Cookie": f"other={canaries.new('other cookie')}; {settings.SESSION_COOKIE_NAME}={canaries.new('cookie')}",
    }
    data = {"password": canaries.new("password"), "csrfmiddlewaretoken": canaries.new("CSRF")}
    address = (
        f"{address.format(canaries.new('path token'))}?token={canaries.new('query')}&a={canaries.new('a')}"
    )
    with (
        logs() as lines,
        override_settings(DEBUG=debug, ADMINS=[("a", "a@example.org")], ROOT_URLCONF=__name__),
        suppress(ConnectionError),
    ):
        answer = client.post(address, data, headers=headers)
        admins = logging.getLogger("django").handlers
        assert any(type(each).__name__ == "AdminEmailHandler" for each in admins)
    assert answer.status_code == 500
    mails = [("mail", each.message().as_string()) for each in mail.outbox]
    assert debug or len(mails) == 1
    evidence = [("page", answer.content.decode()), *mails, *(("log", line) for line in lines)]
    assert "ValueError" in str(evidence)
    assert canaries.found(evidence) == []
