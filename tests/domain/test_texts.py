"""Text from outside can be stored, whatever is in it; PostgreSQL is the one that would refuse it."""

import pytest

from decisions.models import AuditEntry, Cluster, Cycle, PolicyVersion, fields
from decisions.services import clusters, freezes, policies, timeline
from decisions.services.actors import SYSTEM, Actor
from tests.builders import NOW

pytestmark = pytest.mark.django_db
BAD = "a\x00b\ud800c"
FIT = "a\ufffdb\ufffdc"


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
