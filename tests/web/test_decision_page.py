"""One decision: why, what would happen, what happened, what else is known."""

import json
import zlib
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from decisions.models import Cluster, Decision, PolicyVersion, Snapshot, Verdict
from decisions.services import timeline
from decisions.services.actors import Actor
from deschedui.kube.errors import Unreachable
from tests.builders import FORECAST, make_cluster
from tests.domain.fake_cluster import FakeCluster, a_pod, using
from tests.web.conftest import Make
from tests.web.pages import HTMX, text_of

pytestmark = pytest.mark.django_db
POLICY = """apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
profiles:
  - name: default
    pluginConfig:
      - name: PodLifeTime
        args:
          maxPodLifeTimeSeconds: 86400
    plugins:
      deschedule:
        enabled: [PodLifeTime]
"""
OUTCOME: dict[str, Any] = {
    "effect": "allow", "decided_by": "ignorable", "failure_mode": "tls", "reason": "",
    "detail": "certificate is for gate.old, not gate.svc", "http_status": None, "latency_ms": 12.0,
    "url": "https://gate.svc/doors/dui_secret/evict", "fail_policy": "Deny", "ignorable": True,
}  # fmt: skip


def test_the_head_is_one_sentence(as_ada: Client, make: Make) -> None:
    page = text_of(as_ada.get(f"/d/{make(pod_name='web-1').pk}/"))
    assert "Evict web-1 from n1?" in page
    assert "shop/web-1 · Deployment/web · cluster prod · asked by our policy" in page


def test_it_says_what_happens_if_nobody_answers(as_ada: Client, make: Make) -> None:
    assert "Without an answer it expires in" in text_of(as_ada.get(f"/d/{make().pk}/"))


def test_it_quotes_the_policys_own_lines(as_ada: Client, make: Make, cluster: Cluster) -> None:
    policy = PolicyVersion.objects.create(
        cluster=cluster,
        number=1,
        text=POLICY,
        digest="x",
        valid=True,
        source="file",
        created_at=timezone.now(),
    )
    page = text_of(as_ada.get(f"/d/{make(policy=policy).pk}/"))
    assert "8 maxPodLifeTimeSeconds: 86400" in page


def test_a_failed_extender_call_says_what_failed_what_it_meant_and_what_to_do(
    as_ada: Client, make: Make
) -> None:
    decision = make(
        extenders=[OUTCOME], extender_effect="allow", extender_decided_by="ignorable", failure_mode="tls"
    )
    page = text_of(as_ada.get(f"/d/{decision.pk}/"))
    assert "TLS with the extender failed: certificate is for gate.old, not gate.svc." in page
    assert "the missing answer counts as a yes" in page
    assert "tlsConfig: caCertFile and serverName" in page


def test_a_token_in_a_path_is_masked(as_ada: Client, make: Make) -> None:
    page = as_ada.get(f"/d/{make(extenders=[OUTCOME]).pk}/")
    assert b"dui_secret" not in page.content
    assert "/doors/***/evict" in text_of(page)


def test_it_says_what_each_other_node_lacks(as_ada: Client, make: Make) -> None:
    forecast = {**FORECAST, "missing": {"n4": "has 200m cpu free, the pod requests 2"}}
    page = text_of(as_ada.get(f"/d/{make(forecast=forecast).pk}/"))
    assert "n4 has 200m cpu free, the pod requests 2" in page


def test_it_says_how_long_replacements_took_before(as_ada: Client, make: Make) -> None:
    gone = timezone.now() - timedelta(days=1)
    make(
        verdict=Verdict.ALLOWED,
        eviction="evicted",
        accepted_at=gone,
        replacement_ready_at=gone + timedelta(seconds=38),
    )
    assert "a replacement was Ready after 38s" in text_of(as_ada.get(f"/d/{make().pk}/"))


def test_pod_and_node_are_shown_as_they_were(as_ada: Client, make: Make) -> None:
    body = zlib.compress(
        json.dumps({"kind": "Pod", "spec": {"priority": 1000, "priorityClassName": "web"}}).encode()
    )
    snapshot = Snapshot.objects.create(digest="x", kind="Pod", body=body)
    page = text_of(as_ada.get(f"/d/{make(pod_snapshot=snapshot).pk}/"))
    assert "priorityClassName: web" in page
    assert "1000 (web)" in page


def test_a_snapshot_that_cannot_be_read_says_so(as_ada: Client, make: Make) -> None:
    snapshot = Snapshot.objects.create(digest="x", kind="Pod", body=b"no")
    assert "cannot be read" in text_of(as_ada.get(f"/d/{make(pod_snapshot=snapshot).pk}/"))


def test_kubectl_lines_to_copy_are_quoted(as_ada: Client, make: Make) -> None:
    decision = make(cluster=make_cluster("eu", context="my context"), pod_name="web-1")
    page = text_of(as_ada.get(f"/d/{decision.pk}/"))
    assert "kubectl --context 'my context' -n shop describe pod web-1" in page
    assert "get pdb web" in page


def test_the_timeline_says_no_word_twice(as_ada: Client, make: Make) -> None:
    decision = make()
    text = "accepted by the API server; the pod is ending"
    timeline.append(decision.pk, "accepted", at=timezone.now(), reason=text, detail={"message": text})
    assert "Accepted by the API server; the pod is ending 0s ago" in text_of(as_ada.get(f"/d/{decision.pk}/"))


def test_the_timeline_says_who_when_what_and_how_long_between(as_ada: Client, make: Make) -> None:
    decision, now = make(), timezone.now()
    three_ago, one_ago = now - timedelta(minutes=3), now - timedelta(minutes=1)
    timeline.append(decision.pk, "asked", at=three_ago, reason="too old", detail={"asker": "nightly"})
    timeline.append(decision.pk, "denied", at=one_ago, by=Actor(name="Ada"), reason="release")
    page = text_of(as_ada.get(f"/d/{decision.pk}/"))
    assert "Asked by nightly: too old" in page
    assert "+2m Denied by Ada: release" in page


def test_nominated_in_every_cycle_is_one_line(as_ada: Client, make: Make) -> None:
    decision, now = make(), timezone.now()
    for minutes in (15, 10, 5):
        ago = now - timedelta(minutes=minutes)
        timeline.append(decision.pk, "nominated_again", at=ago, reason="too old")
    page = text_of(as_ada.get(f"/d/{decision.pk}/"))
    assert page.count("Nominated again") == 1
    assert "Nominated again 3 times, last: too old 5m ago" in page


def test_who_else_asks_for_the_pod_can_be_answered_one_by_one_or_all_at_once(
    as_ada: Client, make: Make
) -> None:
    ours = make(pod_uid="u")
    other = make(pod_uid="u", asker="caller:7", asker_name="nightly", executor="asker")
    page = as_ada.get(f"/d/{ours.pk}/")
    assert "asked by nightly" in text_of(page)
    assert f'formaction="/d/{other.pk}/approve"'.encode() in page.content
    assert f'name="row" value="{other.pk}:1"'.encode() in page.content
    assert "Approve all that wait…" in text_of(page)


def test_a_failed_eviction_says_what_the_api_server_said_and_what_to_do(as_ada: Client, make: Make) -> None:
    decision = make(
        verdict=Verdict.ALLOWED, rule="human", eviction="failed", cause="rbac",
        message="the cluster does not let us create pods/eviction", decided_by_name="Ada",
    )  # fmt: skip
    page = text_of(as_ada.get(f"/d/{decision.pk}/"))
    assert "The cluster does not let us create pods/eviction." in page
    assert "Give deschedui's worker the missing right" in page
    assert "Try again" in page


def test_a_held_one_can_be_told_to_go_on(as_ada: Client, make: Make) -> None:
    decision = make(
        verdict=Verdict.ALLOWED, rule="human", eviction="queued", held="no Ready replacement after 10m"
    )
    page = text_of(as_ada.get(f"/d/{decision.pk}/"))
    assert "Held: no Ready replacement after 10m." in page
    assert "Go on" in page


def test_what_nobody_checked_is_said(as_ada: Client, make: Make) -> None:
    assert "could not be checked" in text_of(as_ada.get(f"/d/{make(verified=False).pk}/"))


def test_why_is_a_fragment_and_without_htmx_the_page(as_ada: Client, make: Make) -> None:
    decision = make()
    assert "If you say yes" in text_of(as_ada.get(f"/d/{decision.pk}/why", headers=HTMX))
    assert as_ada.get(f"/d/{decision.pk}/why").status_code == 302


def test_fragments_vary_and_are_never_cached(as_ada: Client, make: Make) -> None:
    page = as_ada.get(f"/d/{make().pk}/")
    assert "HX-Request" in page["Vary"]
    assert page["Cache-Control"] == "no-store"


def test_what_is_not_mine_is_404(as_stranger: Client, make: Make) -> None:
    assert as_stranger.get(f"/d/{make().pk}/").status_code == 404


class TestOverride:
    """The only page that asks a cluster: whether the UID still exists."""

    def denied(self, make: Make, **fields: Any) -> Any:
        human = {"verdict": Verdict.DENIED, "rule": "human", "decision_reason": "no", "decided_by_name": "Bo"}
        return make(expires_at=None, **human, **fields)

    def override(self, client: Client, pk: int, world: FakeCluster | None = None) -> Any:
        with using(world or FakeCluster()):
            return client.post(
                f"/d/{pk}/override", {"reason": "must go"}, headers={**HTMX, "HX-Target": "decision"}
            )

    def test_it_needs_a_reason(self, as_ada: Client, make: Make) -> None:
        page = as_ada.post(f"/d/{self.denied(make).pk}/override", {"reason": " "})
        assert page.status_code == 422
        assert "Say why" in text_of(page)

    def test_a_pod_that_is_gone_is_not_evicted(self, as_ada: Client, make: Make) -> None:
        page = self.override(as_ada, self.denied(make).pk)
        assert page.status_code == 409
        assert "no longer exists: there is nothing to evict" in text_of(page)

    def test_a_cluster_that_does_not_answer_changes_nothing(self, as_ada: Client, make: Make) -> None:
        decision = self.denied(make)
        page = self.override(as_ada, decision.pk, FakeCluster(broken=Unreachable("no route to host")))
        assert "cannot be told" in text_of(page)
        assert Decision.objects.get(pk=decision.pk).verdict == Verdict.DENIED

    def test_while_the_pod_exists_a_reason_is_enough(self, as_ada: Client, make: Make) -> None:
        world = FakeCluster()
        world.add(a_pod("web-1", uid="u-1"))
        decision = self.denied(make, pod_uid="u-1", pod_name="web-1")
        page = self.override(as_ada, decision.pk, world)
        assert "Overridden by ada" in text_of(page)
