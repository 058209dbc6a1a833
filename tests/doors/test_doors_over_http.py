"""The first law over HTTP: whatever comes in and whatever breaks, the answer is 200, well-formed and in time."""

import asyncio
import json
import threading
import time
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from django.conf import settings
from django.db import OperationalError
from django.test import override_settings

from decisions.doors import asgi, refusals
from decisions.models import Cluster, Decision
from tests.doors.edges import pod_body, register

HOST = "http://testserver"


async def _django(scope: Any, receive: Any, send: Any) -> None:
    raise AssertionError("a door must not reach Django")


def post(path: str, body: bytes = b"", **headers: str) -> httpx.Response:
    async def call() -> httpx.Response:
        transport = httpx.ASGITransport(app=asgi.with_doors(_django))
        async with httpx.AsyncClient(transport=transport, base_url=HOST) as client:
            return await client.post(path, content=body, headers=headers)

    return asyncio.run(call())


def is_a_no(response: httpx.Response) -> bool:
    return (
        response.status_code == 200 and response.json()["allow"] is False and bool(response.json()["reason"])
    )


@pytest.mark.parametrize(
    "path", ["/doors/evict", "/doors/evict/", "http://testserver//doors//evict", "/doors", "/doors/a/b/c"]
)
def test_every_spelling_of_the_address_is_answered(db: None, path: str) -> None:
    assert is_a_no(post(path, pod_body()))


def test_a_wrong_host_is_a_no(db: None) -> None:
    response = post("/doors/evict", pod_body(), host="evil.example")
    assert is_a_no(response)
    assert "host name" in response.json()["reason"]


def test_a_body_that_is_too_large_is_a_no_that_names_the_limit(db: None) -> None:
    with override_settings(DOOR_MAX_BODY_BYTES=1000):
        response = post("/doors/evict", b"x" * 1001)
    assert is_a_no(response)
    assert "1000 bytes" in response.json()["reason"]


def test_a_pod_with_large_annotations_is_read(transactional_db: None, cluster: Cluster) -> None:
    _, token = register(cluster)
    body = pod_body(annotations={"big": "x" * 250_000}, managedFields=[{"manager": "y" * 200_000}])
    response = post("/doors/evict", body, authorization=f"Bearer {token}")
    assert response.json()["state"] == "pending"
    record = Decision.objects.get().pod_snapshot
    assert record is not None
    assert len(record.body) < 64 * 1024


def test_three_megabytes_are_no_error(transactional_db: None, cluster: Cluster) -> None:
    _, token = register(cluster)
    assert (
        post(
            "/doors/evict", pod_body(annotations={"big": "x" * 3_000_000}), authorization=f"Bearer {token}"
        ).status_code
        == 200
    )


def _door_that(raises: Callable[[], Any]) -> Callable[..., dict[str, Any]]:
    def answer(*_args: Any, **_kwargs: Any) -> dict[str, Any]:
        raises()
        return refusals.refusal("late")

    return answer


def serve(door: Callable[..., dict[str, Any]], *, seconds: float = 2.5) -> httpx.Response:
    async def call() -> httpx.Response:
        app = asgi.with_doors(_django, door=door, unknown_caller_seconds=seconds)
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url=HOST) as client:
            return await client.post("/doors/evict", content=pod_body())

    return asyncio.run(call())


def _raise(error: Exception) -> None:
    raise error


def test_a_database_that_is_away_is_a_no(db: None) -> None:
    response = serve(_door_that(lambda: _raise(OperationalError("connection refused"))))
    assert is_a_no(response)
    assert "database" in response.json()["reason"]


def test_an_error_of_ours_is_a_no(db: None) -> None:
    response = serve(_door_that(lambda: _raise(RuntimeError("a bug"))))
    assert is_a_no(response)
    assert "a bug" not in response.text


def test_an_error_before_the_question_is_read_is_a_no_too(db: None) -> None:
    async def receive() -> asgi.Message:
        raise ConnectionError("cut off")

    sent: list[asgi.Message] = []

    async def send(message: asgi.Message) -> None:
        sent.append(message)

    headers = [(b"host", b"testserver"), (b"content-length", b"\xb2")]
    scope = {"type": "http", "method": "POST", "path": "/doors/evict", "headers": headers}

    async def call() -> None:
        await asgi.with_doors(_django)(scope, receive, send)

    asyncio.run(call())
    assert (sent[0]["status"], json.loads(sent[1]["body"])["allow"]) == (200, False)


def test_a_database_that_hangs_is_a_no_in_time(db: None) -> None:
    hanging = threading.Event()
    begun = time.monotonic()
    try:
        response = serve(_door_that(lambda: hanging.wait(5)), seconds=0.2)
    finally:
        hanging.set()
    assert is_a_no(response)
    assert time.monotonic() - begun < 2


def test_concurrent_questions_make_one_decision(transactional_db: None, cluster: Cluster) -> None:
    _, token = register(cluster)

    async def crowd() -> list[httpx.Response]:
        transport = httpx.ASGITransport(app=asgi.with_doors(_django))
        async with httpx.AsyncClient(transport=transport, base_url=HOST) as client:
            headers = {"authorization": f"Bearer {token}"}
            return await asyncio.gather(
                *(client.post("/doors/evict", content=pod_body(), headers=headers) for _ in range(20))
            )

    answers = asyncio.run(crowd())
    assert {answer.json()["decision"] for answer in answers} == {Decision.objects.get().pk}


@pytest.mark.parametrize(("proxies", "allowed"), [(0, False), (1, True)])
def test_behind_a_proxy_of_ours_a_token_is_bound_to_who_asked_it(
    transactional_db: None, cluster: Cluster, proxies: int, allowed: bool
) -> None:
    _, token = register(cluster, networks=["10.0.0.0/8"])
    with override_settings(ENV=settings.ENV.model_copy(update={"trusted_proxies": proxies})):
        said = post(
            "/doors/evict",
            pod_body(),
            authorization=f"Bearer {token}",
            **{"x-forwarded-for": "8.8.8.8, 10.1.2.3"},
        ).json()["reason"]
    assert (said != "this token may not be used from this address") is allowed
