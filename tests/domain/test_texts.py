"""Text from outside can be stored, whatever is in it; PostgreSQL is the one that would refuse it."""

from typing import Any

import pytest
from django.contrib.auth.models import User

from decisions.models import AuditEntry, Cluster, Cycle, Decision, PolicyVersion, Verdict, fields
from decisions.services import clusters, evictions, freezes, policies, timeline, verdicts
from decisions.services.actors import SYSTEM, Actor
from deschedui.extender.outcomes import Effect
from deschedui.kube.eviction import Again, EvictionCause, EvictionResult
from tests.builders import FORECAST, NOW, at, make_ask, make_cluster, make_decision
from tests.domain.test_verdicts import with_outcome

pytestmark = pytest.mark.django_db
BAD = "a\x00b\ud800c"
FIT = r"a\u0000b\ud800c"


@pytest.mark.parametrize(
    ("text", "limit", "stored"),
    [("short", 5, "short"), ("longer", 5, "long…"), (BAD, None, FIT), ("", 5, "")],
)
def test_a_text_is_made_to_fit(text: str, limit: int | None, stored: str) -> None:
    assert fields.fit(text, limit) == stored


def test_so_is_everything_in_a_document() -> None:
    assert fields.fit_json({BAD: [BAD, 1, None, True, float("nan")]}) == {FIT: [FIT, 1, None, True, "nan"]}


def test_a_freeze_says_its_reason_whatever_is_in_it(cluster: Cluster) -> None:
    row = freezes.freeze(cluster=cluster, by=Actor(BAD * 100), reason=BAD * 1000, now=NOW)
    row.refresh_from_db()
    assert row.reason.startswith(FIT)
    assert (len(row.reason), len(row.set_by), len(AuditEntry.objects.get().subject)) == (500, 200, 300)


def test_a_policy_with_hostile_text_is_stored_and_shown(cluster: Cluster) -> None:
    text = f'apiVersion: "{BAD[:2]}"\nprofiles: ["\\0", "\\ud800"]\n'
    source = policies.Source(text, f"file {BAD}")
    for _ in range(2):
        policies.store(cluster=cluster, source=source, checked=policies.validate(text), now=NOW)
    row = PolicyVersion.objects.get()
    assert not row.valid
    assert "\x00" not in row.text + str(row.errors) + row.source + row.upstream_error


def test_a_cycles_words_are_stored(cluster: Cluster) -> None:
    row = Cycle.objects.create(
        cluster=cluster,
        kind="manual",
        state="running",
        started_at=NOW,
        deadline_at=NOW,
        heartbeat_at=NOW,
        step=BAD * 20,
        progress=BAD * 200,
        error=BAD,
        warnings=[BAD],
        limits=[{"name": BAD}],
        steps=[{"detail": BAD}],
    )
    row.refresh_from_db()
    assert (len(row.step), len(row.progress), row.error) == (40, 200, FIT)
    assert (row.warnings, row.limits, row.steps) == ([FIT], [{"name": FIT}], [{"detail": FIT}])


def test_a_clusters_problem_and_place_are_stored(cluster: Cluster) -> None:
    clusters.change(cluster=cluster, policy_file=f"/etc/{BAD}", by=SYSTEM, now=NOW)
    Cluster.objects.update(problem=BAD, server_version=BAD * 100)
    cluster.refresh_from_db()
    assert (cluster.policy_file, cluster.problem) == (f"/etc/{FIT}", FIT)
    timeline.audit("seen", at=NOW, by=SYSTEM, detail={BAD: BAD})


# --- decisions --------------------------------------------------------------------------------------------

HOSTILE: dict[str, Any] = {
    "node": BAD * 100,
    "profile": BAD * 100,
    "plugin": BAD * 100,
    "reason": BAD * 1000,
    "owner_kind": BAD * 100,
    "owner_name": BAD * 100,
    "owner_uid": BAD * 100,
    "workload": BAD * 100,
    "asker_name": BAD * 100,
    "forecast": {**FORECAST, "missing": {BAD: BAD}},
}


def test_an_ask_is_recorded_whatever_it_says(cluster: Cluster) -> None:
    ask = make_ask(cluster, pod_uid="u1", **HOSTILE, **with_outcome(Effect.ALLOW, reason=BAD, detail=BAD))
    assert verdicts.record(ask=ask, now=NOW).what == "created"
    assert verdicts.record(ask=ask, now=at(1)).what == "again"
    row = Decision.objects.get()
    assert (row.extender_reason, row.extenders[0]["detail"], len(row.profile)) == (FIT, FIT, 253)


@pytest.mark.parametrize("effect", [Effect.DENY, Effect.SKIP])
def test_an_extender_may_say_no_in_any_words(cluster: Cluster, effect: Effect) -> None:
    ask = make_ask(cluster, pod_uid="u1", **with_outcome(effect, reason=BAD * 2000, url=BAD))
    verdicts.record(ask=ask, now=NOW)
    assert verdicts.record(ask=ask, now=at(1)).what == "again"
    assert Decision.objects.get().decision_reason.startswith(FIT)


def test_a_person_may_too(cluster: Cluster, ada: User) -> None:
    row, by = make_decision(cluster), Actor(BAD * 100, ada)
    row = verdicts.deny(decision_id=row.pk, version=1, by=by, reason=BAD, now=NOW)
    row = verdicts.override(decision_id=row.pk, by=by, reason=BAD, pod_exists=True, now=at(1))
    row = verdicts.take_back(decision_id=row.pk, by=by, reason=BAD * 2000, now=at(2))
    assert (row.verdict, len(row.decision_reason), len(row.decided_by_name)) == (Verdict.DENIED, 4096, 200)


def test_so_may_an_api_server(db: None) -> None:
    row = make_decision(
        make_cluster(), verdict=Verdict.ALLOWED, eviction="evicting", attempt=1, lease_until=at(9)
    )
    result = EvictionResult(
        "blocked", EvictionCause.WEBHOOK_BLOCKED, BAD, Again.BACKOFF, pdb=BAD * 100, webhook=BAD * 100
    )
    assert evictions.write_result(row.pk, 1, result, now=NOW) == "blocked"
    row.refresh_from_db()
    assert (row.message, len(row.pdb), len(row.webhook)) == (FIT, 253, 253)


def test_a_replacement_may_have_any_name(cluster: Cluster) -> None:
    row = make_decision(cluster, verdict=Verdict.ALLOWED, eviction="evicted")
    found = evictions.Replacement(uid=BAD, name=BAD * 100, node=BAD * 100, ready=True)
    assert evictions.note_replacement(row, found, now=NOW)
