"""Decisions by API: list, read, approve, deny, override, take back; conflicts say who was first."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from decisions.models import Cluster, Decision, Eviction, Role, Verdict
from decisions.services import connections, verdicts
from decisions.services.actors import Actor
from tests.api.clients import Api, api
from tests.builders import make_ask, make_cluster, make_decision, make_user

pytestmark = pytest.mark.django_db


def waiting(cluster: Cluster, **fields: Any) -> Decision:
    decision = verdicts.record(ask=make_ask(cluster, **fields), now=timezone.now()).decision
    assert decision is not None
    return decision


def test_a_decision_is_read_with_its_timeline(cluster: Cluster, ada: User) -> None:
    row = waiting(cluster)
    body = api(ada).get(f"decisions/{row.pk}/").json()
    assert body["url"] == f"http://testserver/d/{row.pk}/"
    assert body["reason"] == "pod is 26h old, the policy allows at most 24h"
    assert [line["kind"] for line in body["timeline"]] == ["asked"]


def test_an_approval_is_queued_at_once(cluster: Cluster, ada: User) -> None:
    row = waiting(cluster)
    answer = api(ada, "decide").post(f"decisions/{row.pk}/approve/", {"version": 1})
    body = answer.json()
    assert (answer.status_code, body["verdict"], body["eviction"]) == (200, "allowed", "queued")


def test_the_timeline_says_that_it_was_a_token(cluster: Cluster, ada: User) -> None:
    row = waiting(cluster)
    body = api(ada, "decide").post(f"decisions/{row.pk}/approve/", {"version": 1}).json()
    assert body["decided_by_name"] == "ada (token ci)"


def test_the_second_of_two_hears_who_was_first(cluster: Cluster, ada: User) -> None:
    row = waiting(cluster)
    verdicts.approve(decision_id=row.pk, version=1, by=Actor("Grace"), undo_seconds=0, now=timezone.now())
    answer = api(ada, "decide").post(f"decisions/{row.pk}/deny/", {"version": 1, "reason": "no"})
    assert answer.status_code == 409
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["detail"] == "Already approved by Grace."


def test_a_changed_version_is_refused_with_what_changed(cluster: Cluster, ada: User) -> None:
    row = waiting(cluster, pod_uid="u1")
    waiting(cluster, pod_uid="u1", node="n2")
    answer = api(ada, "decide").post(f"decisions/{row.pk}/approve/", {"version": 1})
    assert answer.status_code == 409
    assert answer.json()["changes"] == {"node": {"shown": "n1", "now": "n2"}}
    assert answer.json()["version"] == 2


def test_a_denial_without_a_reason_is_refused_by_name(cluster: Cluster, ada: User) -> None:
    row = waiting(cluster)
    answer = api(ada, "decide").post(f"decisions/{row.pk}/deny/", {"version": 1})
    assert answer.status_code == 400
    assert list(answer.json()["errors"]) == ["reason"]
    assert Decision.objects.get().verdict == Verdict.PENDING


def test_an_approval_is_taken_back(cluster: Cluster, ada: User) -> None:
    row, client = waiting(cluster), api(ada, "decide")
    client.post(f"decisions/{row.pk}/approve/", {"version": 1})
    body = client.post(f"decisions/{row.pk}/take-back/", {"reason": "wrong one"}).json()
    assert (body["verdict"], body["eviction"], body["decision_reason"]) == ("denied", "none", "wrong one")


def test_what_is_evicting_cannot_be_taken_back(cluster: Cluster, ada: User) -> None:
    row = make_decision(cluster, verdict=Verdict.ALLOWED, eviction=Eviction.ACCEPTED)
    answer = api(ada, "decide").post(f"decisions/{row.pk}/take-back/", {"reason": "wait"})
    assert answer.status_code == 409
    assert answer.json()["detail"] == "Too late: its eviction is accepted."


def test_an_override_needs_a_cluster_that_answers(cluster: Cluster, ada: User) -> None:
    row = make_decision(cluster, verdict=Verdict.DENIED, decision_reason="no", expires_at=None)

    def unreachable(*_args: Any, **_kwargs: Any) -> Any:
        from deschedui.kube.errors import Unreachable

        raise Unreachable("no answer within 5 s")

    with connections.using(unreachable):
        answer = api(ada, "override").post(f"decisions/{row.pk}/override/", {"reason": "incident"})
    assert answer.status_code == 503
    assert Decision.objects.get().verdict == Verdict.DENIED


def test_a_read_token_reads_and_nothing_else(cluster: Cluster, ada: User) -> None:
    row = waiting(cluster)
    client = api(ada)
    assert client.get("decisions/").status_code == 200
    assert client.post(f"decisions/{row.pk}/approve/", {"version": 1}).status_code == 403


def test_a_viewer_cannot_decide(cluster: Cluster, viewer: User) -> None:
    row = waiting(cluster)
    assert api(viewer, "decide").post(f"decisions/{row.pk}/approve/", {"version": 1}).status_code == 403
    assert Decision.objects.get().verdict == Verdict.PENDING


def test_somebody_elses_namespace_does_not_exist(cluster: Cluster) -> None:
    bob = make_user("bob", Role.APPROVER, namespaces=["payments"])
    row = waiting(cluster)
    client = api(bob, "decide")
    assert client.get("decisions/").json()["results"] == []
    assert client.post(f"decisions/{row.pk}/approve/", {"version": 1}).status_code == 404


def test_deciding_here_is_not_deciding_there(cluster: Cluster) -> None:
    other = make_cluster("staging")
    bob = make_user("bob", Role.APPROVER, clusters=[other])
    make_user_viewer_too(bob)
    row = waiting(cluster)
    answer = api(bob, "decide").post(f"decisions/{row.pk}/approve/", {"version": 1})
    assert answer.status_code == 403
    assert "is not yours" in answer.json()["detail"]


def make_user_viewer_too(user: User) -> None:
    from decisions.models import RoleBinding

    RoleBinding.objects.create(user=user, role=Role.VIEWER)


def test_nobody_gets_nothing(cluster: Cluster, stranger: User) -> None:
    assert Api().get("decisions/").status_code == 401
    assert Api("dui_made-up").get("decisions/").status_code == 401
    assert api(stranger).get("decisions/").status_code == 403


def test_a_session_needs_the_csrf_token(cluster: Cluster, ada: User) -> None:
    row = waiting(cluster)
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(ada)
    assert Api(client=browser).post(f"decisions/{row.pk}/approve/", {"version": 1}).status_code == 403
    assert Decision.objects.get().verdict == Verdict.PENDING


def test_pages_follow_a_cursor_while_rows_are_added(cluster: Cluster, ada: User) -> None:
    rows = [waiting(cluster, owner_uid=f"o{n}") for n in range(3)]
    first = api(ada).get("decisions/", page_size=2).json()
    waiting(cluster, owner_uid="o9")
    second = api(ada).get(f"decisions/?{first['next'].partition('?')[2]}").json()
    assert [row["id"] for row in first["results"] + second["results"]] == [row.pk for row in reversed(rows)]


def test_filters_narrow_and_search_finds_reasons(cluster: Cluster, ada: User) -> None:
    waiting(cluster, namespace="shop")
    other = waiting(cluster, namespace="payments", owner_uid="o2", reason="does not tolerate taint gpu")
    client = api(ada)
    assert [row["id"] for row in client.get("decisions/", q="TAINT gpu").json()["results"]] == [other.pk]
    assert len(client.get("decisions/", namespace="shop", verdict="pending").json()["results"]) == 1
    assert client.get("decisions/", verdict="maybe").status_code == 400
