"""The inbox: what waits, for whom, in which order and groups."""

import gzip
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from decisions.models import Caller, Cluster, Cycle, CycleKind, CycleState, Role, Verdict
from tests.builders import FORECAST, make_cluster, make_user
from tests.web.conftest import Make, browser_of
from tests.web.pages import links_of, text_of

pytestmark = pytest.mark.django_db


def test_it_shows_the_pod_the_plugin_and_the_reason(as_ada: Client, make: Make) -> None:
    make(pod_name="web-1", plugin="PodLifeTime", reason="pod is 26h old, the policy allows at most 24h")
    page = text_of(as_ada.get("/"))
    assert "web-1" in page
    assert "PodLifeTime pod is 26h old, the policy allows at most 24h" in page


def test_the_title_carries_the_number_that_waits(as_ada: Client, make: Make) -> None:
    make()
    make()
    assert b"<title>(2) Inbox" in as_ada.get("/").content


def test_a_group_says_what_all_of_its_pods_share(as_ada: Client, make: Make) -> None:
    make(pod_name="web-1")
    make(pod_name="web-2")
    page = text_of(as_ada.get("/"))
    assert "shop/web 3 of 3 Ready PDB web allows 1 2 pods asked for" in page


def test_what_expires_first_comes_first(as_ada: Client, make: Make) -> None:
    make(pod_name="later", workload="Deployment/later")
    make(pod_name="soon", workload="Deployment/soon", expires_at=timezone.now() + timedelta(minutes=2))
    page = text_of(as_ada.get("/"))
    assert page.index("shop/soon") < page.index("shop/later")


def test_it_groups_by_node_on_request(as_ada: Client, make: Make) -> None:
    make(node="n1")
    make(node="n2", workload="Deployment/other")
    page = text_of(as_ada.get("/?group=node"))
    assert "Node n1" in page
    assert "Node n2" in page


def test_a_caller_is_named_once(as_ada: Client, make: Make) -> None:
    make(plugin="", asker_name="nightly", reason="nightly wants to evict it")
    page = text_of(as_ada.get("/"))
    assert "nightly wants to evict it" in page
    assert "nightly nightly" not in page


def test_a_bad_forecast_is_said_in_chips(as_ada: Client, make: Make) -> None:
    make(forecast={**FORECAST, "fits_on": [], "only_replica": True})
    page = text_of(as_ada.get("/"))
    assert "no room" in page
    assert "only replica" in page


def test_asked_again_after_nobody_answered_says_so(as_ada: Client, make: Make, cluster: Cluster) -> None:
    first = timezone.now().replace(hour=0, minute=10)
    make(pod_uid="u", verdict=Verdict.EXPIRED, rule="time", created_at=first, expires_at=None)
    make(pod_uid="u", unanswered=2)
    assert "3rd time since 00:10" in text_of(as_ada.get("/"))


def test_all_who_ask_for_a_pod_stand_together(as_ada: Client, make: Make, cluster: Cluster) -> None:
    caller = Caller.objects.create(name="nightly", cluster=cluster)
    ours = make(pod_uid="u")
    make(pod_uid="u", asker=caller.asker, asker_name="nightly", caller=caller, executor="asker")
    page = as_ada.get("/")
    assert "also asked by nightly" in text_of(page)
    assert links_of(page)["also asked by our policy"] == f"/d/{ours.pk}/"


def test_a_viewer_sees_who_may_decide_and_no_dead_button(as_viewer: Client, make: Make) -> None:
    make_user("bo", Role.APPROVER)
    make()
    page = as_viewer.get("/")
    assert "bo may decide" in text_of(page)
    assert b"data-approve" not in page.content


def test_a_stranger_sees_nothing_and_is_told_why(as_stranger: Client, make: Make) -> None:
    make(pod_name="secret-pod")
    page = text_of(as_stranger.get("/"))
    assert "secret-pod" not in page
    assert "You have no role in any cluster yet" in page


def test_other_namespaces_do_not_exist_for_who_has_one(make: Make) -> None:
    make(namespace="shop", pod_name="mine")
    make(namespace="bank", pod_name="theirs", workload="Deployment/bank")
    page = text_of(browser_of(make_user("nina", Role.APPROVER, namespaces=["shop"])).get("/"))
    assert "mine" in page
    assert "theirs" not in page


def test_empty_it_says_what_the_last_cycle_found_and_when_the_next_one_runs(
    as_ada: Client, make: Make, cluster: Cluster
) -> None:
    now = timezone.now()
    Cluster.objects.update(next_cycle_at=now + timedelta(seconds=90))
    made = Cycle.objects.create(
        cluster=cluster, kind=CycleKind.SCHEDULED, state=CycleState.COMPLETED, started_at=now, finished_at=now,
        deadline_at=now, heartbeat_at=now, counts={"pods": 150, "nominated": 0},
    )  # fmt: skip
    page = text_of(as_ada.get("/"))
    assert "Nothing waits for a decision" in page
    assert f"nominated 0 of 150 pods (cycle {made.pk})" in page
    assert "The next one runs in" in page


def test_what_limits_held_back_is_one_line(as_ada: Client, make: Make, cluster: Cluster) -> None:
    now = timezone.now()
    Cycle.objects.create(
        cluster=cluster, kind=CycleKind.SCHEDULED, state=CycleState.COMPLETED, started_at=now, deadline_at=now,
        heartbeat_at=now, limits=[{"kind": "node", "name": "n1", "limit": 2, "heldBack": 940, "filledBy": []}],
    )  # fmt: skip
    make()
    assert "held back 940 pods" in text_of(as_ada.get("/"))


def test_what_was_approved_and_is_not_gone_stays_in_sight(as_ada: Client, make: Make) -> None:
    make(
        pod_name="b-1",
        verdict=Verdict.ALLOWED,
        rule="human",
        eviction="blocked",
        pdb="web",
        decided_at=timezone.now(),
    )
    page = text_of(as_ada.get("/"))
    assert "Approved, not gone yet" in page
    assert "blocked by PDB web" in page
    assert "Take back" in page


def test_the_cluster_of_the_address_narrows_it(as_ada: Client, make: Make) -> None:
    other = make_cluster("staging")
    make(pod_name="in-prod")
    make(cluster=other, pod_name="in-staging")
    page = text_of(as_ada.get("/?cluster=staging"))
    assert "in-staging" in page
    assert "in-prod" not in page


def test_hostile_names_and_reasons_are_text(as_ada: Client, make: Make) -> None:
    make(reason="<script>alert(1)</script>", workload='Deployment/"><img src=x>')
    page = as_ada.get("/").content
    assert b"<script>alert" not in page
    assert b"<img src=x>" not in page


def test_the_number_of_queries_does_not_grow_with_the_rows(
    as_ada: Client, make: Make, django_assert_max_num_queries: Any
) -> None:
    for number in range(30):
        make(pod_name=f"web-{number}", workload=f"Deployment/w{number % 7}", unanswered=number % 2)
    with django_assert_max_num_queries(18):
        as_ada.get("/")


def test_two_hundred_rows_weigh_at_most_100_kb_compressed(as_ada: Client, make: Make) -> None:
    for number in range(200):
        make(pod_name=f"web-{number:x}-{hash(number) % 99991:x}", workload=f"Deployment/w{number % 40}")
    page = as_ada.get("/").content
    assert page.count(b"data-pending") == 200
    assert len(gzip.compress(page, 6)) <= 100_000
