"""The order of rules, the same everywhere: where two apply, the earlier one decides.

Freeze, a human's denial in its cool-down, a human's approval or override, an extender's denial, its skip,
``unattended``, else pending.
"""

from typing import Any

import pytest
from django.contrib.auth.models import User

from decisions.models import Cluster, Decision, Eviction, Rule, Verdict
from decisions.services import evictions, freezes, pace, verdicts
from decisions.services.actors import SYSTEM, Actor
from decisions.services.errors import Conflict
from deschedui.extender.outcomes import Effect
from tests.builders import NOW, at, make_ask, make_cluster, make_decision
from tests.domain.test_verdicts import DAY, with_outcome

pytestmark = pytest.mark.django_db
YES = {"approval_required": False, **with_outcome(Effect.ALLOW)}
NO, SKIP = with_outcome(Effect.DENY), with_outcome(Effect.SKIP)


@pytest.fixture
def cluster(db: None) -> Cluster:
    """One that lets an extender's yes pass without a human."""
    return make_cluster(overrides={"unattended": "failures"})


def ask(cluster: Cluster, seconds: float = 0, **fields: Any) -> verdicts.Record:
    return verdicts.record(ask=make_ask(cluster, pod_uid="u1", **fields), now=at(seconds))


def decided(cluster: Cluster, verdict: Verdict, **fields: Any) -> Decision:
    """What a human or an extender said about the pod before."""
    denied = verdict == Verdict.DENIED
    defaults = {
        "pod_uid": "u1",
        "verdict": verdict,
        "rule": Rule.HUMAN,
        "decided_by_name": "ada",
        "decided_at": NOW,
        "decision_reason": "backup" if denied else "",
        "expires_at": None if denied else at(3600),
        "cooldown_until": at(DAY) if denied else None,
    }
    return make_decision(cluster, **{**defaults, **fields})


def override(row: Decision, ada: User, seconds: float = 60) -> Decision:
    by = Actor.person(ada)
    return verdicts.override(
        decision_id=row.pk, by=by, reason="I know better", pod_exists=True, now=at(seconds)
    )


def retry(row: Decision, ada: User) -> Decision:
    return evictions.retry_failed(decision_id=row.pk, by=Actor.person(ada), now=at(60))


# --- a freeze comes first ---------------------------------------------------------------------------------


def test_a_freeze_comes_before_unattended(cluster: Cluster) -> None:
    freezes.freeze(cluster=cluster, by=SYSTEM, reason="incident", now=NOW)
    row = ask(cluster, **YES).decision
    assert row is not None
    assert (row.verdict, row.rule) == (Verdict.PENDING, Rule.NONE)


def test_a_freeze_comes_before_a_humans_approval(cluster: Cluster) -> None:
    row = decided(cluster, Verdict.ALLOWED, eviction=Eviction.QUEUED)
    freezes.freeze(cluster=None, by=SYSTEM, reason="incident", now=NOW)
    assert evictions.claim(row.pk, worker="w1", rules=pace.Rules(), now=NOW) == 0


# --- then a human's denial --------------------------------------------------------------------------------


@pytest.mark.parametrize("says", [YES, NO, SKIP])
def test_a_humans_denial_comes_before_whatever_an_extender_says(
    cluster: Cluster, says: dict[str, Any]
) -> None:
    denial = decided(cluster, Verdict.DENIED)
    recorded = ask(cluster, **says)
    assert (recorded.what, recorded.decision) == (verdicts.Recorded.COOLING, denial)
    assert Decision.objects.count() == 1


def test_a_later_denial_comes_before_the_override_of_an_older_one(cluster: Cluster, ada: User) -> None:
    older = ask(cluster, **NO).decision
    assert older is not None
    later = decided(cluster, Verdict.DENIED)
    with pytest.raises(
        Conflict, match=rf"Decision {later.pk} holds: denied by ada: backup, until .* Override"
    ):
        override(older, ada)
    older.refresh_from_db()
    assert older.verdict == Verdict.DENIED


def test_that_one_can_be_overridden(cluster: Cluster, ada: User) -> None:
    ask(cluster, **NO)
    assert override(decided(cluster, Verdict.DENIED), ada).verdict == Verdict.ALLOWED


def test_when_its_time_is_over_the_older_one_can_be_too(cluster: Cluster, ada: User) -> None:
    older = ask(cluster, **NO).decision
    assert older is not None
    decided(cluster, Verdict.DENIED, cooldown_until=at(59))
    assert override(older, ada).verdict == Verdict.ALLOWED


def test_a_denial_comes_before_trying_a_failed_one_again(cluster: Cluster, ada: User) -> None:
    failed = decided(cluster, Verdict.ALLOWED, eviction=Eviction.FAILED)
    later = decided(cluster, Verdict.DENIED)
    with pytest.raises(Conflict, match=f"Decision {later.pk} holds"):
        retry(failed, ada)
    failed.refresh_from_db()
    assert failed.eviction == Eviction.FAILED


def test_another_askers_denial_is_none_of_its_business(cluster: Cluster, ada: User) -> None:
    failed = decided(cluster, Verdict.ALLOWED, eviction=Eviction.FAILED)
    decided(cluster, Verdict.DENIED, asker="caller:7")
    assert retry(failed, ada).eviction == Eviction.QUEUED


# --- then a human's approval, an extender's denial, its skip, unattended -----------------------------------


@pytest.mark.parametrize("says", [NO, SKIP])
def test_a_humans_approval_comes_before_whatever_an_extender_says(
    cluster: Cluster, says: dict[str, Any]
) -> None:
    row = decided(cluster, Verdict.ALLOWED, eviction=Eviction.QUEUED)
    ask(cluster, **says)
    row.refresh_from_db()
    assert (row.verdict, row.eviction, row.nominated_count) == (Verdict.ALLOWED, Eviction.QUEUED, 2)


@pytest.mark.parametrize(
    ("says", "verdict", "rule"),
    [
        (NO, Verdict.DENIED, Rule.EXTENDER),
        (SKIP, Verdict.SKIPPED, Rule.EXTENDER),
        (YES, Verdict.ALLOWED, Rule.UNATTENDED),
        ({}, Verdict.PENDING, Rule.NONE),
    ],
)
def test_what_an_extender_says_comes_before_unattended_and_unattended_before_waiting(
    cluster: Cluster, says: dict[str, Any], verdict: str, rule: str
) -> None:
    row = ask(cluster, **{"approval_required": False, **says}).decision
    assert row is not None
    assert (row.verdict, row.rule) == (verdict, rule)
