"""Cases from real reports about the Eviction API, under their ids, and the other inputs of the same kinds."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from deschedui.descheduler.objects import PodDisruptionBudget, from_builtins
from deschedui.kube.answers import RawAnswer
from deschedui.kube.eviction import (
    Again,
    EvictionCause,
    EvictionRequest,
    EvictionResult,
    PodLook,
    interpret,
    next_try_after,
    resolve,
)

OLD = "3f6c1f0e-6a2b-4a54-9c1e-0d5b7b1a0001"
NEW = "3f6c1f0e-6a2b-4a54-9c1e-0d5b7b1a0002"
TEXT = {"Content-Type": "text/plain; charset=utf-8"}


def status(
    code: int,
    message: str = "",
    *,
    reason: str = "",
    details: dict[str, Any] | None = None,
    headers: Mapping[str, str] | None = None,
) -> RawAnswer:
    """An answer with a ``Status`` as its body."""
    body = {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure" if code >= 300 else "Success",
        "message": message,
        "reason": reason,
        "details": details,
        "code": code,
    }
    return RawAnswer(code, headers or {}, json.dumps(body).encode())


def pdb_cause(message: str, *, kind: str = "DisruptionBudget") -> dict[str, Any]:
    return {"causes": [{"reason": kind, "message": message}]}


def pdb(name: str, **labels: str) -> PodDisruptionBudget:
    value = {"metadata": {"name": name, "namespace": "shop"}, "spec": {"selector": {"matchLabels": labels}}}
    return from_builtins(value, PodDisruptionBudget)


def read(answer: RawAnswer) -> EvictionResult:
    return interpret(answer, namespace="shop", name="cart-0")


# ---- EV-01: replaced


@pytest.mark.parametrize(
    "message",
    [
        (
            f'Operation cannot be fulfilled on pods "cart-0": the UID in the precondition ({OLD}) does not match the '
            f"UID in record ({NEW}). The object might have been deleted and then recreated"
        ),
        f"Precondition failed: UID in precondition: {OLD}, UID in object meta: {NEW}",
    ],
)
def test_ev_01_a_replaced_pod_is_gone_and_needs_its_own_decision(message: str) -> None:
    result = read(status(409, message, reason="Conflict"))

    assert (result.status, result.code, result.again) == ("gone", EvictionCause.REPLACED, Again.NO)
    assert "replaced" in result.message
    assert "uid" in result.message


def test_ev_01_the_eviction_carries_the_approved_uid() -> None:
    body = EvictionRequest("shop", "cart-0", OLD).body()
    assert body["deleteOptions"] == {"preconditions": {"uid": OLD}}
    assert body["apiVersion"] == "policy/v1"


def test_ev_01_an_eviction_without_a_uid_is_refused() -> None:
    with pytest.raises(ValueError, match="UID"):
        EvictionRequest("shop", "cart-0", "")


# ---- EV-02: a PDB


def test_ev_02_a_pdb_blocks_and_is_named() -> None:
    result = read(
        status(
            429,
            "Cannot evict pod as it would violate the pod's disruption budget.",
            reason="TooManyRequests",
            details=pdb_cause("The disruption budget cart needs 3 healthy pods and has 3 currently"),
        )
    )

    assert (result.status, result.code, result.pdb) == ("blocked", EvictionCause.PDB, "cart")
    assert "needs 3 healthy pods and has 3 currently" in result.message
    assert not result.slows_cluster


def test_ev_02_it_backs_off_from_30_s_for_as_long_as_the_decision_lasts() -> None:
    result = read(status(429, "", details=pdb_cause("The disruption budget cart needs 3 healthy pods")))
    assert [next_try_after(result, tries=tries) for tries in (1, 2, 3, 50)] == [30, 60, 120, 600]


@pytest.mark.parametrize("name", ["cart", "cart-api.v2", "disruption-budget"])
def test_ev_02_the_name_of_any_pdb_is_read(name: str) -> None:
    text = f"The disruption budget {name} does not allow evicting pods currently because it failed sync: x"
    assert read(status(429, "", details=pdb_cause(text))).pdb == name


@pytest.mark.parametrize(
    ("headers", "details", "seconds"),
    [
        ({"Retry-After": "10"}, {}, 10),
        ({"retry-after": "10"}, {}, 10),
        ({}, {"retryAfterSeconds": 10}, 10),
        ({"Retry-After": "999999"}, {}, 600),
    ],
)
def test_ev_02_a_pdb_that_is_not_processed_yet_says_when(
    headers: dict[str, str], details: dict[str, Any], seconds: float
) -> None:
    causes = pdb_cause("The disruption budget cart is still being processed by the server.")
    result = read(status(429, "Cannot evict pod", details=causes | details, headers=headers))

    assert (result.status, result.code, result.pdb) == ("blocked", EvictionCause.PDB_NOT_PROCESSED, "cart")
    assert "not processed yet" in result.message
    assert next_try_after(result, tries=1) == seconds


def test_ev_02_a_pdb_is_known_by_its_text_where_no_cause_is_given() -> None:
    result = read(status(429, "Cannot evict pod as it would violate the pod's disruption budget."))
    assert (result.status, result.code) == ("blocked", EvictionCause.PDB)


# ---- EV-04: throttling


@pytest.mark.parametrize(
    "answer",
    [
        RawAnswer(429, TEXT | {"Retry-After": "1"}, b"Too many requests, please try again later.\n"),
        RawAnswer(429, TEXT | {"retry-after": "1"}, b"\xff\xfe not even text"),
        status(429, "the server has received too many requests", headers={"Retry-After": "1"}),
    ],
)
def test_ev_04_a_throttling_api_server_is_no_pdb(answer: RawAnswer) -> None:
    result = read(answer)

    assert (result.status, result.code, result.retry_after) == ("queued", EvictionCause.THROTTLED, 1)
    assert result.slows_cluster
    assert "throttling" in result.message
    assert "PDB" not in result.message


@pytest.mark.parametrize("value", ["", "soon", "-5", "0", "1.5", "Wed, 21 Oct 2026 07:28:00 GMT", "٣"])
def test_ev_04_a_retry_after_that_says_no_seconds_waits_ten(value: str) -> None:
    result = read(RawAnswer(429, {"Retry-After": value}, b"Too many requests"))
    assert (result.status, result.retry_after) == ("queued", 10)


# ---- EV-05: several PDBs

SEVERAL = (
    "Internal error occurred: This pod has more than one PodDisruptionBudget, which the eviction subresource "
    "does not support."
)


def test_ev_05_every_pdb_that_covers_the_pod_is_named() -> None:
    result = interpret(
        status(500, SEVERAL, reason="InternalError"),
        namespace="shop",
        name="cart-0",
        pdbs=[pdb("cart-b", tier="web"), pdb("other", app="till"), pdb("cart-a", app="cart")],
        labels={"app": "cart", "tier": "web"},
    )

    assert (result.status, result.code, result.again) == ("failed", EvictionCause.SEVERAL_PDBS, Again.NO)
    assert result.pdbs == ("cart-a", "cart-b")
    assert "shop/cart-0" in result.message
    assert "cart-a, cart-b" in result.message


def test_ev_05_without_the_pdbs_it_says_that_it_does_not_know_them() -> None:
    assert "does not say which" in read(status(500, SEVERAL)).message


# ---- EV-07: answers that are lost, or come too late


def test_ev_07_404_is_gone_and_not_an_eviction() -> None:
    result = read(status(404, 'pods "cart-0" not found', reason="NotFound"))
    assert (result.status, result.code, result.again) == ("gone", EvictionCause.NOT_FOUND, Again.NO)


@pytest.mark.parametrize("body", [b"404 page not found\n", b"<html>not here</html>", b""])
def test_ev_07_a_404_of_something_else_proves_nothing(body: bytes) -> None:
    assert read(RawAnswer(404, TEXT, body)).status == "unknown"


NO_ANSWERS = [
    RawAnswer.missing("no complete answer within 30 s"),
    RawAnswer.missing("connection refused"),
    status(504, "Timeout: request did not complete within the allotted timeout", reason="Timeout"),
    RawAnswer(502, {}, b"<html>bad gateway</html>"),
    RawAnswer(503, TEXT, b"apiserver not ready"),
    RawAnswer(418, TEXT, b"teapot"),
    RawAnswer(302, {"Location": "https://elsewhere"}, b""),
    RawAnswer(200, {"Content-Type": "text/html"}, b"<html>please sign in</html>"),
    RawAnswer(204),
    status(422, "Invalid value", reason="Invalid"),
    status(403, "pods is forbidden: some policy engine says no", reason="Forbidden"),
]


@pytest.mark.parametrize("answer", NO_ANSWERS, ids=lambda answer: f"{answer.status} {answer.body[:12]!r}")
def test_ev_07_an_unclear_answer_asks_for_a_look_at_the_pod(answer: RawAnswer) -> None:
    assert read(answer).status == "unknown"


@pytest.mark.parametrize(
    ("look", "expected", "unconfirmed"),
    [
        (PodLook(""), "evicted", True),
        (PodLook(NEW), "evicted", True),
        (PodLook(OLD, terminating=True), "accepted", True),
        (PodLook(OLD), "queued", False),
    ],
)
def test_ev_07_the_look_settles_it(look: PodLook, expected: str, unconfirmed: bool) -> None:
    result = resolve(read(NO_ANSWERS[0]), look, uid=OLD)

    assert (result.status, result.unconfirmed) == (expected, unconfirmed)
    assert ("unconfirmed" in result.message) is unconfirmed


def test_ev_07_after_five_tries_it_is_given_up() -> None:
    result = resolve(read(NO_ANSWERS[0]), PodLook(OLD), uid=OLD)
    assert next_try_after(result, tries=4) is not None
    assert next_try_after(result, tries=5) is None


def test_ev_07_a_conflict_with_the_same_uid_is_tried_again_at_once_and_then_as_any_other() -> None:
    result = resolve(
        read(status(409, "the object has been modified", reason="Conflict")), PodLook(OLD), uid=OLD
    )

    assert (result.status, result.code) == ("queued", EvictionCause.CONFLICT)
    assert [next_try_after(result, tries=tries) for tries in (1, 2, 5)] == [1, 60, None]


def test_ev_07_a_conflict_about_a_pod_that_has_gone_evicted_nothing() -> None:
    result = resolve(read(status(409, "the object has been modified")), PodLook(NEW), uid=OLD)
    assert (result.status, result.code, result.unconfirmed) == ("gone", EvictionCause.REPLACED, False)


def test_ev_07_a_settled_answer_is_not_changed_by_a_look() -> None:
    accepted = read(status(201))
    assert resolve(accepted, PodLook(""), uid=OLD) == accepted


# ---- EV-09: webhooks

DENIED = 'admission webhook "drain.strimzi.example" denied the request'


@pytest.mark.parametrize("code", [400, 403, 409, 404, 401, 422])
def test_ev_09_a_webhook_that_denies_is_named_with_its_text(code: int) -> None:
    result = read(status(code, f"{DENIED}: kafka pod is handled by its operator"))

    assert (result.status, result.code, result.again) == (
        "failed",
        EvictionCause.WEBHOOK_DENIED,
        Again.BY_HAND,
    )
    assert result.webhook == "drain.strimzi.example"
    assert "kafka pod is handled by its operator" in result.message
    assert next_try_after(result, tries=1) is None


def test_ev_09_a_webhook_may_deny_without_a_word() -> None:
    result = read(status(400, f"{DENIED} without explanation"))
    assert (result.status, result.webhook) == ("failed", "drain.strimzi.example")
    assert "no explanation" in result.message


def test_ev_09_a_webhook_that_says_later_blocks() -> None:
    result = read(status(429, f"{DENIED}: rebuilding", headers={"Retry-After": "5"}))

    assert (result.status, result.code) == ("blocked", EvictionCause.WEBHOOK_BLOCKED)
    assert (result.webhook, next_try_after(result, tries=1)) == ("drain.strimzi.example", 30)
    assert not result.slows_cluster


@pytest.mark.parametrize(
    "text",
    [
        "more than one PodDisruptionBudget",
        'User "eve" cannot create resource "pods/eviction" in API group ""',
        "because it is being terminated",
        "Cannot evict pod as it would violate the pod's disruption budget.",
        "UID in precondition",
        'failed calling webhook "other"',
    ],
)
def test_ev_09_a_webhook_cannot_pretend_to_be_another_answer(text: str) -> None:
    for code in (400, 403, 409):
        assert read(status(code, f"{DENIED}: {text}")).code is EvictionCause.WEBHOOK_DENIED


def test_ev_09_a_move_in_the_background_is_no_denial() -> None:
    text = "Eviction triggered evacuation of VMI shop/vm-1"
    result = read(status(429, f'admission webhook "virt" denied the request: {text}'))

    assert (result.status, result.code, result.again) == (
        "in_background",
        EvictionCause.IN_BACKGROUND,
        Again.FOLLOW,
    )
    assert result.webhook == "virt"


@pytest.mark.parametrize(
    "url",
    [
        "https://gate.shop.svc:443/doors/s3cret/admission?timeout=10s",
        "https://user:s3cret@gate.shop.svc/admission",
        "https://gate.shop.svc/hook?token=s3cret",
    ],
)
def test_ev_09_a_webhook_that_cannot_be_called_is_named_and_its_address_masked(url: str) -> None:
    text = (
        'Internal error occurred: failed calling webhook "gate.example.com": failed to call webhook: '
        f'Post "{url}": context deadline exceeded'
    )
    result = read(status(500, text, reason="InternalError"))

    assert (result.status, result.code) == ("queued", EvictionCause.WEBHOOK_UNAVAILABLE)
    assert result.webhook == "gate.example.com"
    assert "s3cret" not in result.message
    assert "context deadline exceeded" in result.message
    assert next_try_after(result, tries=4) is not None
    assert next_try_after(result, tries=5) is None


def test_ev_09_our_own_door_is_masked_in_a_denial_too() -> None:
    result = read(status(403, f"{DENIED}: see https://deschedui/doors/s3cret/admission"))
    assert "s3cret" not in result.message


# ---- EV-11: a pod that no PDB covers


def test_ev_11_a_pending_pod_is_evicted_whatever_its_pdb_says() -> None:
    result = interpret(
        status(201), namespace="shop", name="cart-9", pdbs=[pdb("cart", app="cart")], labels={"app": "cart"}
    )
    assert (result.status, result.code) == ("accepted", EvictionCause.CREATED)


# ---- EV-12: success


@pytest.mark.parametrize(
    "answer",
    [
        status(201),
        status(200),
        RawAnswer(201, {}, b""),
        RawAnswer(201, {}, b'{"kind":"Eviction","apiVersion":"policy/v1","metadata":null}'),
        RawAnswer(
            201, {}, b'{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","code":201}'
        ),
    ],
)
def test_ev_12_accepted_is_not_evicted_yet(answer: RawAnswer) -> None:
    result = read(answer)
    assert (result.status, result.again) == ("accepted", Again.FOLLOW)
    assert next_try_after(result, tries=1) is None


# ---- the other rows of the table


@pytest.mark.parametrize(
    "text",
    ["pdb disruptions allowed is negative", "DisruptedPods map too big - too many evictions not confirmed"],
)
def test_a_pdb_in_trouble_blocks_with_its_text(text: str) -> None:
    details = {"name": "cart", "group": "policy", "kind": "poddisruptionbudget"}
    message = f'poddisruptionbudget.policy "cart" is forbidden: {text}'
    result = read(status(403, message, reason="Forbidden", details=details))

    assert (result.status, result.code, result.pdb) == ("blocked", EvictionCause.PDB_UNUSABLE, "cart")
    assert text in result.message


@pytest.mark.parametrize(
    "details", [pdb_cause("namespace shop is being terminated", kind="NamespaceTerminating"), None]
)
def test_a_namespace_that_ends_takes_the_pod_with_it(details: dict[str, Any] | None) -> None:
    why = "unable to create new content in namespace shop because it is being terminated"
    message = f'pods "cart-0" is forbidden: {why}'
    result = read(status(403, message, reason="Forbidden", details=details))
    assert (result.status, result.code, result.again) == (
        "gone",
        EvictionCause.NAMESPACE_TERMINATING,
        Again.NO,
    )


@pytest.mark.parametrize(
    ("message", "verb", "resource"),
    [
        (
            (
                'pods "cart-0" is forbidden: User "system:serviceaccount:deschedui:deschedui-worker" cannot create '
                'resource "pods/eviction" in API group "" in the namespace "shop"'
            ),
            "create",
            "pods/eviction",
        ),
        (
            (
                'poddisruptionbudgets.policy is forbidden: User "x" cannot list resource "poddisruptionbudgets" in API '
                'group "policy" in the namespace "shop": RBAC: clusterrole.rbac.authorization.k8s.io "y" not found'
            ),
            "list",
            "poddisruptionbudgets.policy",
        ),
    ],
)
def test_a_missing_right_is_named_and_holds_the_namespace(message: str, verb: str, resource: str) -> None:
    result = read(status(403, message, reason="Forbidden"))

    assert (result.status, result.code, result.again) == ("failed", EvictionCause.RBAC, Again.BY_HAND)
    assert (result.verb, result.resource, result.holds_namespace) == (verb, resource, True)


@pytest.mark.parametrize(
    "answer", [status(401, "Unauthorized", reason="Unauthorized"), RawAnswer(401, TEXT, b"")]
)
def test_refused_credentials_keep_the_eviction_queued(answer: RawAnswer) -> None:
    result = read(answer)
    assert (result.status, result.code, result.again) == (
        "queued",
        EvictionCause.UNAUTHORIZED,
        Again.CREDENTIALS,
    )


@pytest.mark.parametrize("answer", [*NO_ANSWERS, status(201), status(429), RawAnswer(500, {}, b"[]")])
def test_every_answer_can_be_stored(answer: RawAnswer) -> None:
    stored = json.loads(json.dumps(read(answer).as_dict()))
    assert stored["http_status"] == answer.status


def test_a_message_is_bounded_and_on_one_line() -> None:
    result = read(status(403, f"{DENIED}: \x00\u202e" + "line\n" * 100_000))
    assert len(result.message) <= 1200
    assert result.message.isprintable()


@pytest.mark.parametrize(
    ("date", "read_as"),
    [
        ("Mon, 30 Nov 2026 03:00:07 GMT", datetime(2026, 11, 30, 3, 0, 7, tzinfo=UTC)),
        ("Mon, 30 Nov 2026 03:00:07 -0000", None),
        ("yesterday", None),
        ("", None),
    ],
)
def test_the_answer_says_when_by_the_servers_clock(date: str, read_as: datetime | None) -> None:
    result = read(status(201, headers={"Date": date}))
    assert result.server_time == read_as
    assert result.as_dict()["server_time"] == (read_as.isoformat() if read_as else "")
