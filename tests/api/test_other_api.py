"""Cycles, policies, freezes, clusters by API, and the document that describes all of it."""

import pytest
from django.contrib.auth.models import User
from django.test import Client

from decisions.models import Cluster, Cycle, CycleKind, Freeze, Role
from tests.api.clients import api
from tests.builders import NOW, make_cluster, make_user

pytestmark = pytest.mark.django_db

POLICY = """
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
profiles:
- name: p
  pluginConfig:
  - name: PodLifeTime
    args: {maxPodLifeTimeSecond: 3600}
  plugins:
    deschedule: {enabled: [PodLifeTime]}
"""


def test_a_cycle_is_started_once(cluster: Cluster, ada: User) -> None:
    client = api(ada, "decide")
    first = client.post("cycles/", {"cluster": "prod"})
    second = client.post("cycles/", {"cluster": "prod"})
    assert (first.status_code, second.status_code) == (201, 409)
    assert second.json()["cycle"] == first.json()["id"]


def test_a_dry_run_waits_for_nobody(cluster: Cluster, ada: User) -> None:
    client = api(ada, "decide")
    client.post("cycles/", {"cluster": "prod"})
    answer = client.post("cycles/", {"cluster": "prod", "dry_run": True})
    assert answer.status_code == 201
    assert Cycle.objects.filter(kind=CycleKind.DRY_RUN).exists()


def test_a_cluster_that_is_not_yours_does_not_exist(cluster: Cluster) -> None:
    bob = make_user("bob", Role.APPROVER, clusters=[make_cluster("staging")])
    answer = api(bob, "decide").post("cycles/", {"cluster": "prod"})
    assert answer.status_code == 404


def test_a_cycle_names_nothing_of_other_peoples_namespaces(cluster: Cluster, ada: User) -> None:
    hits = [
        {"kind": kind, "name": name} for kind, name in (("total", ""), ("namespace", "pay"), ("owner", "D"))
    ]
    warnings = ["its volume stays behind (shop/web-1, pay/card-2 and 3 more)", "Policy: ignorable is true"]
    times = dict.fromkeys(("started_at", "deadline_at", "heartbeat_at"), NOW)
    cluster.cycles.create(kind="manual", state="completed", limits=hits, warnings=warnings, **times)
    bob = make_user("bob", Role.VIEWER, namespaces=["shop"])
    shown, whole = (api(user).get("cycles/").json()["results"][0] for user in (bob, ada))
    assert ([hit["kind"] for hit in shown["limits"]], whole["limits"]) == (["total"], hits)
    assert shown["warnings"] == ["its volume stays behind", "Policy: ignorable is true"]
    assert whole["warnings"] == warnings


@pytest.mark.parametrize("path", ["clusters/%00/", "clusters/pr%00d/", "clusters/staging/"])
def test_a_cluster_that_is_none_is_not_found(cluster: Cluster, ada: User, path: str) -> None:
    assert api(ada).get(path).status_code == 404


def test_a_policy_text_is_checked_with_places_and_hints(ada: User) -> None:
    body = api(ada).post("policies/validate/", {"text": POLICY}).json()
    assert body["valid"] is False
    assert "maxPodLifeTimeSeconds" in str(body["errors"])
    assert body["errors"][0]["line"] > 0


def test_a_freeze_is_set_and_lifted(cluster: Cluster, ada: User, admin: User) -> None:
    row = api(ada, "decide").post("freezes/", {"cluster": "prod", "reason": "incident 42"})
    assert row.status_code == 201
    assert api(ada, "decide").post(f"freezes/{row.json()['id']}/lift/").status_code == 403
    assert api(admin, "configure").post(f"freezes/{row.json()['id']}/lift/").json()["lifted_at"]


def test_freezing_twice_is_one_freeze(cluster: Cluster, ada: User) -> None:
    client = api(ada, "decide")
    ids = {client.post("freezes/", {"reason": "incident"}).json()["id"] for _ in range(2)}
    assert ids == {Freeze.objects.get().pk}


def test_freezing_everything_needs_a_right_to_everything(cluster: Cluster) -> None:
    bob = make_user("bob", Role.APPROVER, clusters=[cluster])
    assert api(bob, "decide").post("freezes/", {"reason": "incident"}).status_code == 403
    assert not Freeze.objects.exists()


def test_clusters_say_how_they_are(cluster: Cluster, ada: User) -> None:
    assert api(ada).get("clusters/prod/").json()["armed"] is True


def test_the_document_is_openapi_3_1_with_examples(ada: User) -> None:
    browser = Client()
    browser.force_login(ada)
    document = browser.get("/api/v1/openapi/", headers={"Accept": "application/vnd.oai.openapi+json"}).json()
    assert document["openapi"].startswith("3.1")
    approve = document["paths"]["/api/v1/decisions/{id}/approve/"]["post"]
    assert "it changed" in str(approve["responses"]["409"]).lower()


def test_the_documentation_has_a_page(ada: User) -> None:
    browser = Client()
    browser.force_login(ada)
    assert browser.get("/api/docs/").status_code == 200
