"""Every arrow of an eviction, and what refuses it."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction

from decisions.models import Cluster, Decision, Event, Eviction, Executor, Verdict
from decisions.services import evictions, pace, timeline, verdicts
from decisions.services.actors import SYSTEM, Actor
from decisions.services.errors import Conflict
from deschedui.descheduler.policy.model import Limits
from deschedui.kube.eviction import Again, EvictionCause, EvictionResult, PodLook
from tests.builders import NOW, at, make_decision

pytestmark = pytest.mark.django_db
RULES = pace.Rules()


def allowed(cluster: Cluster, eviction: str = Eviction.NONE, **fields: Any) -> Decision:
    """An allowed decision whose eviction is this far."""
    lease = at(120) if eviction == Eviction.EVICTING else None
    defaults = {
        "verdict": Verdict.ALLOWED,
        "eviction": eviction,
        "decided_at": NOW,
        "expires_at": at(3600),
        "lease_until": lease,
        "attempt": int(eviction == Eviction.EVICTING),
    }
    return make_decision(cluster, **{**defaults, **fields})


def claim(row: Decision, *, limits: Limits = evictions.NO_LIMITS, seconds: float = 0) -> int:
    return evictions.claim(row.pk, worker="w1", rules=RULES, limits=limits, now=at(seconds))


def fresh(row: Decision) -> Decision:
    row.refresh_from_db()
    return row


# --- the claim --------------------------------------------------------------------------------------------


def test_a_claim_takes_a_lease_of_two_minutes(cluster: Cluster) -> None:
    row = allowed(cluster, Eviction.QUEUED)
    assert claim(row) == 1
    assert (fresh(row).eviction, row.lease_until, row.claimed_by) == (Eviction.EVICTING, at(120), "w1")


def test_an_approval_that_expired_is_not_even_queued(cluster: Cluster) -> None:
    row = allowed(cluster, expires_at=at(10))
    assert not evictions.queue(row.pk, not_before=at(10), now=at(10))
    assert evictions.queue(row.pk, not_before=at(9), now=at(9))


def test_a_second_claim_gets_nothing(cluster: Cluster) -> None:
    row = allowed(cluster, Eviction.QUEUED)
    assert (claim(row), claim(row)) == (1, 0)


@pytest.mark.parametrize(
    "fields",
    [
        {"eviction": Eviction.NONE},
        {"eviction": Eviction.BLOCKED},
        {"eviction": Eviction.NONE, "verdict": Verdict.PENDING},
        {"eviction": Eviction.NONE, "verdict": Verdict.DENIED},
        {"expires_at": NOW},
        {"not_before": at(1)},
        {"held": "no Ready replacement"},
        {"eviction": Eviction.DELEGATED, "executor": Executor.ASKER},
    ],
)
def test_what_must_hold_is_in_the_claim(cluster: Cluster, fields: dict[str, Any]) -> None:
    row = allowed(cluster, **{"eviction": Eviction.QUEUED, **fields})
    assert claim(row) == 0


def test_a_cluster_that_only_observes_claims_nothing(cluster: Cluster) -> None:
    row = allowed(cluster, Eviction.QUEUED)
    Cluster.objects.update(armed=False)
    assert claim(row) == 0


def test_a_paused_cluster_carries_out_what_was_decided(cluster: Cluster) -> None:
    row = allowed(cluster, Eviction.QUEUED)
    Cluster.objects.update(paused=True)
    assert claim(row) == 1


@pytest.mark.parametrize(
    "status", [Eviction.EVICTING, Eviction.ACCEPTED, Eviction.IN_BACKGROUND, Eviction.EVICTED]
)
def test_the_claim_itself_keeps_to_the_owners_pace(cluster: Cluster, status: str) -> None:
    allowed(cluster, status, accepted_at=NOW)
    assert claim(allowed(cluster, Eviction.QUEUED)) == 0


def test_a_settled_one_makes_room_for_the_next(cluster: Cluster) -> None:
    allowed(cluster, Eviction.EVICTED, accepted_at=NOW, settled_at=NOW)
    assert claim(allowed(cluster, Eviction.QUEUED)) == 1


def test_the_claim_itself_keeps_to_the_clusters_calls(cluster: Cluster) -> None:
    for number in range(4):
        allowed(cluster, Eviction.EVICTING, owner_uid=f"o{number}")
    assert claim(allowed(cluster, Eviction.QUEUED)) == 0


def test_calls_of_a_worker_that_died_hold_up_the_cluster_for_less_than_their_lease(cluster: Cluster) -> None:
    for number in range(4):
        allowed(cluster, Eviction.EVICTING, owner_uid=f"o{number}")
    row = allowed(cluster, Eviction.QUEUED)
    assert [claim(row, seconds=seconds) for seconds in (44, 46)] == [0, 1]


# --- the last look before the call ------------------------------------------------------------------------


def test_a_claimed_one_may_be_posted(cluster: Cluster) -> None:
    row = allowed(cluster, Eviction.EVICTING)
    assert evictions.may_post(row.pk, 1, call_seconds=30, now=at(89))


@pytest.mark.parametrize(("attempt", "seconds"), [(2, 0), (0, 0), (1, 90), (1, 121)])
def test_another_attempt_or_a_short_lease_may_not(cluster: Cluster, attempt: int, seconds: float) -> None:
    row = allowed(cluster, Eviction.EVICTING)
    assert not evictions.may_post(row.pk, attempt, call_seconds=30, now=at(seconds))


def test_the_last_look_is_one_query(cluster: Cluster, django_assert_num_queries: Any) -> None:
    row = allowed(cluster, Eviction.EVICTING)
    with django_assert_num_queries(1):
        evictions.may_post(row.pk, 1, call_seconds=30, now=NOW)


# --- what answers mean ------------------------------------------------------------------------------------


def result(
    status: Any, code: EvictionCause = EvictionCause.OTHER, again: Again = Again.NO, **fields: Any
) -> EvictionResult:
    return EvictionResult(status, code, "as the API server said", again, **fields)


def written(row: Decision, answer: EvictionResult, *, seconds: float = 1) -> Decision:
    evictions.write_result(row.pk, row.attempt, answer, now=at(seconds))
    return fresh(row)


@pytest.mark.parametrize(
    ("answer", "event"),
    [
        (result("accepted", again=Again.FOLLOW), Event.ACCEPTED),
        (result("evicted"), Event.EVICTED),
        (result("gone"), Event.GONE),
        (result("blocked", again=Again.BACKOFF), Event.BLOCKED),
        (result("queued", again=Again.LIMITED), Event.REQUEUED),
        (result("failed", again=Again.BY_HAND), Event.FAILED),
        (result("in_background", again=Again.FOLLOW), Event.IN_BACKGROUND),
    ],
)
def test_an_answer_is_a_status_and_a_line_of_the_timeline(
    cluster: Cluster, answer: EvictionResult, event: str
) -> None:
    row = written(allowed(cluster, Eviction.EVICTING), answer)
    assert (row.eviction, row.message, row.lease_until) == (answer.status, "as the API server said", None)
    assert [line.kind for line in row.events.all()] == [event]


def test_the_result_of_an_earlier_attempt_is_not_written(cluster: Cluster) -> None:
    row = allowed(cluster, Eviction.EVICTING, attempt=2)
    assert evictions.write_result(row.pk, 1, result("failed"), now=NOW) is None
    assert fresh(row).eviction == Eviction.EVICTING


def test_an_unknown_outcome_is_left_to_the_lease(cluster: Cluster) -> None:
    row = written(allowed(cluster, Eviction.EVICTING), result("unknown", again=Again.LIMITED))
    assert (row.eviction, row.lease_until) == (Eviction.EVICTING, at(120))


@pytest.mark.parametrize(("before", "pause"), [(0, 30), (1, 60), (2, 120), (9, 600)])
def test_a_blocked_one_backs_off(cluster: Cluster, before: int, pause: int) -> None:
    row = allowed(cluster, Eviction.EVICTING)
    for _ in range(before):
        timeline.append(row.pk, Event.BLOCKED, at=NOW)
    row = written(row, result("blocked", EvictionCause.PDB, Again.BACKOFF, pdb="web"))
    assert (row.not_before, row.pdb) == (at(1 + pause), "web")


def test_a_blocked_one_waits_as_long_as_the_server_asked(cluster: Cluster) -> None:
    answer = result("blocked", EvictionCause.PDB_NOT_PROCESSED, Again.AFTER, retry_after=10)
    assert written(allowed(cluster, Eviction.EVICTING), answer).not_before == at(11)


def test_an_answer_that_says_nothing_is_tried_five_times(cluster: Cluster) -> None:
    answer = result("queued", EvictionCause.WEBHOOK_UNAVAILABLE, Again.LIMITED, max_tries=5)
    fourth = written(allowed(cluster, Eviction.EVICTING, failures=3), answer)
    fifth = written(allowed(cluster, Eviction.EVICTING, failures=4, owner_uid="o"), answer)
    assert (fourth.eviction, fourth.failures) == (Eviction.QUEUED, 4)
    assert fifth.eviction == Eviction.FAILED
    assert fifth.events.get().reason == "given up after 5 tries: as the API server said"


def test_an_answer_that_says_something_starts_the_count_anew(cluster: Cluster) -> None:
    row = allowed(cluster, Eviction.EVICTING, failures=4)
    assert written(row, result("blocked", again=Again.BACKOFF)).failures == 0


def test_a_missing_right_holds_the_rest_of_the_namespace(cluster: Cluster) -> None:
    waiting = allowed(cluster, Eviction.QUEUED)
    elsewhere = allowed(cluster, Eviction.QUEUED, namespace="other")
    written(
        allowed(cluster, Eviction.EVICTING),
        result("failed", EvictionCause.RBAC, Again.BY_HAND, holds_namespace=True),
    )
    assert (fresh(waiting).held, fresh(elsewhere).held) == ("as the API server said", "")
    assert waiting.events.get().kind == Event.HELD


def test_the_first_success_there_lets_the_rest_go(cluster: Cluster) -> None:
    waiting = allowed(cluster, Eviction.QUEUED)
    evictions.hold_namespace(cluster.pk, "shop", why="no right", now=NOW)
    written(allowed(cluster, Eviction.EVICTING), result("accepted", again=Again.FOLLOW))
    assert fresh(waiting).held == ""


# --- who waits for whom -----------------------------------------------------------------------------------


def test_a_second_yes_for_a_pod_waits_for_the_first(cluster: Cluster) -> None:
    first = allowed(cluster, Eviction.QUEUED, pod_uid="u1")
    second = allowed(cluster, pod_uid="u1", asker="caller:7")
    assert not evictions.queue(second.pk, not_before=NOW, now=NOW)
    assert (fresh(second).eviction, second.waits_for) == (Eviction.NONE, first)


def test_it_is_queued_when_the_first_fails(cluster: Cluster) -> None:
    first = allowed(cluster, Eviction.EVICTING, pod_uid="u1")
    second = allowed(cluster, pod_uid="u1", asker="caller:7", waits_for=first)
    written(first, result("failed", again=Again.BY_HAND))
    assert (fresh(second).eviction, second.waits_for) == (Eviction.QUEUED, None)


def test_it_is_queued_when_the_first_is_taken_back(cluster: Cluster) -> None:
    first = allowed(cluster, Eviction.QUEUED, pod_uid="u1")
    second = allowed(cluster, pod_uid="u1", asker="caller:7", waits_for=first)
    verdicts.take_back(decision_id=first.pk, by=SYSTEM, reason="not tonight", now=NOW)
    assert fresh(second).eviction == Eviction.QUEUED


def test_it_is_queued_when_the_first_waits_for_a_human_again(cluster: Cluster) -> None:
    first = allowed(cluster, Eviction.QUEUED, pod_uid="u1", rule="human")
    second = allowed(cluster, pod_uid="u1", asker="caller:7", waits_for=first)
    third = allowed(cluster, pod_uid="u1", asker="caller:8", waits_for=second)
    verdicts.undo(decision_id=first.pk, by=SYSTEM, now=at(1))
    assert fresh(second).eviction == Eviction.QUEUED
    verdicts.back_to_pending(decision_id=second.pk, why="fewer are ready", changes={}, now=at(2))
    assert fresh(third).eviction == Eviction.QUEUED


def test_it_is_withdrawn_when_the_first_has_evicted_the_pod(cluster: Cluster) -> None:
    first = allowed(cluster, Eviction.EVICTING, pod_uid="u1")
    second = allowed(cluster, pod_uid="u1", asker="caller:7", waits_for=first)
    written(first, result("evicted"))
    assert fresh(second).verdict == Verdict.WITHDRAWN


def test_what_nothing_keeps_any_more_is_queued_by_the_sweep(cluster: Cluster) -> None:
    row = allowed(cluster, pod_uid="u1")
    assert evictions.queue_stranded(now=NOW) == 1
    assert fresh(row).eviction == Eviction.QUEUED


def test_the_sweep_leaves_alone_who_still_waits(cluster: Cluster) -> None:
    first = allowed(cluster, Eviction.BLOCKED, pod_uid="u1")
    allowed(cluster, pod_uid="u1", asker="caller:7", waits_for=first)
    assert evictions.queue_stranded(now=NOW) == 0


# --- a pod that is gone -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "after"),
    [
        ({"verdict": Verdict.PENDING}, (Verdict.WITHDRAWN, Eviction.NONE)),
        ({"verdict": Verdict.ALLOWED}, (Verdict.WITHDRAWN, Eviction.NONE)),
        ({"eviction": Eviction.QUEUED}, (Verdict.ALLOWED, Eviction.GONE)),
        ({"eviction": Eviction.BLOCKED}, (Verdict.ALLOWED, Eviction.GONE)),
        ({"eviction": Eviction.DELEGATED, "executor": Executor.ASKER}, (Verdict.ALLOWED, Eviction.EVICTED)),
        ({"eviction": Eviction.ACCEPTED}, (Verdict.ALLOWED, Eviction.EVICTED)),
        ({"eviction": Eviction.IN_BACKGROUND}, (Verdict.ALLOWED, Eviction.EVICTED)),
        ({"eviction": Eviction.EVICTING}, (Verdict.ALLOWED, Eviction.EVICTING)),
        ({"verdict": Verdict.DENIED}, (Verdict.DENIED, Eviction.NONE)),
    ],
)
def test_a_pod_that_is_gone_ends_what_was_open(
    cluster: Cluster, fields: dict[str, Any], after: tuple[str, str]
) -> None:
    row = allowed(cluster, **{"pod_uid": "u1", **fields})
    if row.eviction == Eviction.EVICTING:
        row.lease_until = at(120)
    evictions.pod_is_gone(cluster.pk, "u1", why="the pod is gone", now=NOW)
    assert (fresh(row).verdict, row.eviction) == after


def test_a_pod_without_an_owner_needs_no_replacement(cluster: Cluster) -> None:
    row = allowed(cluster, Eviction.ACCEPTED, pod_uid="u1", owner_uid="")
    evictions.pod_is_gone(cluster.pk, "u1", why="gone", now=NOW)
    assert fresh(row).settled_at == NOW


# --- by time ----------------------------------------------------------------------------------------------


def test_a_blocked_one_is_queued_when_its_time_has_come(cluster: Cluster) -> None:
    row = allowed(cluster, Eviction.BLOCKED, not_before=at(30))
    assert evictions.requeue_blocked(now=at(29)) == 0
    assert evictions.requeue_blocked(now=at(30)) == 1
    assert fresh(row).eviction == Eviction.QUEUED


def test_a_blocked_one_expires_with_its_approval(cluster: Cluster) -> None:
    row = allowed(cluster, Eviction.BLOCKED, expires_at=at(10))
    verdicts.expire_due(now=at(10))
    assert (fresh(row).verdict, row.eviction) == (Verdict.EXPIRED, Eviction.NONE)


@pytest.mark.parametrize(
    ("look", "after", "unconfirmed"),
    [
        (PodLook(""), Eviction.EVICTED, True),
        (PodLook("another"), Eviction.EVICTED, True),
        (PodLook("u1", terminating=True), Eviction.ACCEPTED, True),
        (PodLook("u1"), Eviction.QUEUED, False),
    ],
)
def test_a_lease_that_ran_out_is_settled_by_the_pod(
    cluster: Cluster, look: PodLook, after: str, unconfirmed: bool
) -> None:
    row = allowed(cluster, Eviction.EVICTING, pod_uid="u1")
    [lost] = evictions.leases_that_ran_out(cluster.pk, now=at(120))
    assert evictions.recover(lost, look, now=at(120)) == after
    assert (fresh(row).eviction, row.unconfirmed) == (after, unconfirmed)


def test_a_lease_that_still_runs_is_left_alone(cluster: Cluster) -> None:
    row = allowed(cluster, Eviction.EVICTING, pod_uid="u1")
    assert not evictions.leases_that_ran_out(cluster.pk, now=at(119)).exists()
    assert evictions.recover(row, PodLook(""), now=at(119)) is None


def test_a_worker_that_comes_back_late_writes_nothing(cluster: Cluster) -> None:
    row = allowed(cluster, Eviction.EVICTING, pod_uid="u1")
    evictions.recover(row, PodLook("u1"), now=at(120))
    assert evictions.write_result(row.pk, 1, result("accepted"), now=at(121)) is None
    assert fresh(row).eviction == Eviction.QUEUED


# --- by a person ------------------------------------------------------------------------------------------


def test_a_failed_one_is_tried_again_with_a_fresh_expiry(cluster: Cluster, ada: User) -> None:
    row = allowed(cluster, Eviction.FAILED, failures=5, expires_at=at(-10), released_at=at(-900))
    evictions.retry_failed(decision_id=row.pk, by=Actor.person(ada), reason="webhook is back", now=NOW)
    assert (fresh(row).eviction, row.failures, row.expires_at) == (Eviction.QUEUED, 0, at(4 * 3600))
    line = row.events.get()
    assert (line.by_id, line.reason) == (ada.pk, "webhook is back")


def test_trying_again_takes_the_place_of_what_the_asker_has_open(cluster: Cluster, ada: User) -> None:
    row = allowed(cluster, Eviction.FAILED, pod_uid="u1")
    other = make_decision(cluster, pod_uid="u1")
    evictions.retry_failed(decision_id=row.pk, by=Actor.person(ada), now=NOW)
    assert (fresh(other).verdict, fresh(row).eviction) == (Verdict.WITHDRAWN, Eviction.QUEUED)


def test_trying_again_is_refused_while_the_askers_other_one_is_under_way(cluster: Cluster, ada: User) -> None:
    row = allowed(cluster, Eviction.FAILED, pod_uid="u1")
    allowed(cluster, Eviction.ACCEPTED, pod_uid="u1")
    with pytest.raises(Conflict, match="is being carried out already"):
        evictions.retry_failed(decision_id=row.pk, by=Actor.person(ada), now=NOW)


def test_trying_again_is_refused_while_another_asker_has_the_pod(cluster: Cluster, ada: User) -> None:
    row = allowed(cluster, Eviction.FAILED, pod_uid="u1")
    other = allowed(cluster, Eviction.QUEUED, pod_uid="u1", asker="caller:7")
    with pytest.raises(Conflict, match=f"Decision {other.pk} is evicting this pod already"):
        evictions.retry_failed(decision_id=row.pk, by=Actor.person(ada), now=NOW)
    assert fresh(row).eviction == Eviction.FAILED


def test_trying_again_is_refused_where_the_cluster_only_observes(cluster: Cluster, ada: User) -> None:
    row = allowed(cluster, Eviction.FAILED)
    Cluster.objects.update(armed=False)
    with pytest.raises(Conflict, match="only observes"):
        evictions.retry_failed(decision_id=row.pk, by=Actor.person(ada), now=NOW)


@pytest.mark.parametrize("status", [status for status in Eviction.values if status != Eviction.FAILED])
def test_only_what_failed_can_be_tried_again(cluster: Cluster, ada: User, status: str) -> None:
    row = allowed(cluster, status, lease_until=at(120))
    with pytest.raises(Conflict, match="Only a failed eviction"):
        evictions.retry_failed(decision_id=row.pk, by=Actor.person(ada), now=NOW)


def test_going_on_releases_the_owners_rest(cluster: Cluster, ada: User) -> None:
    stuck = allowed(cluster, Eviction.EVICTED, accepted_at=at(-900))
    held = [allowed(cluster, Eviction.QUEUED, held="no Ready replacement") for _ in range(2)]
    evictions.go_on(decision_id=held[0].pk, by=Actor.person(ada), now=NOW)
    assert [fresh(row).held for row in held] == ["", ""]
    assert fresh(stuck).settled_at == NOW
    assert held[0].events.get().by_id == ada.pk


def test_after_going_on_they_still_go_one_after_the_other(cluster: Cluster, ada: User) -> None:
    allowed(cluster, Eviction.EVICTED, accepted_at=at(-900))
    held = [allowed(cluster, Eviction.QUEUED, held="no Ready replacement") for _ in range(2)]
    evictions.go_on(decision_id=held[1].pk, by=Actor.person(ada), now=NOW)
    assert [claim(row) for row in held] == [1, 0]


def test_going_on_after_a_missing_right_releases_that_one(cluster: Cluster, ada: User) -> None:
    rows = [allowed(cluster, Eviction.QUEUED) for _ in range(2)]
    evictions.hold_namespace(cluster.pk, "shop", why="no right", now=NOW)
    evictions.go_on(decision_id=rows[0].pk, by=Actor.person(ada), now=NOW)
    assert [fresh(row).held for row in rows] == ["", "no right"]


def test_what_is_not_held_cannot_go_on(cluster: Cluster, ada: User) -> None:
    row = allowed(cluster, Eviction.QUEUED)
    with pytest.raises(Conflict, match="not held"):
        evictions.go_on(decision_id=row.pk, by=Actor.person(ada), now=NOW)


def test_a_held_one_expires_with_its_approval(cluster: Cluster) -> None:
    row = allowed(cluster, Eviction.QUEUED, held="no Ready replacement", expires_at=at(10))
    verdicts.expire_due(now=at(10))
    assert (fresh(row).verdict, row.held) == (Verdict.EXPIRED, "")


# --- limits -----------------------------------------------------------------------------------------------


@pytest.fixture
def cycle(cluster: Cluster) -> Any:
    """A completed cycle."""
    return cluster.cycles.create(
        kind="scheduled", state="completed", started_at=NOW, deadline_at=at(600), heartbeat_at=NOW
    )


@pytest.mark.parametrize(
    ("limits", "says"),
    [
        (Limits(total=1), "the limit of 1 evictions for a cycle"),
        (Limits(per_node=1), "the limit of 1 evictions for node n1"),
        (Limits(per_namespace=1), "the limit of 1 evictions for namespace shop"),
    ],
)
def test_over_a_limit_it_stays_queued_and_says_which(
    cluster: Cluster, cycle: Any, limits: Limits, says: str
) -> None:
    allowed(cluster, Eviction.EVICTED, cycle=cycle, accepted_at=NOW, settled_at=NOW)
    row = allowed(cluster, Eviction.QUEUED, cycle=cycle)
    assert claim(row, limits=limits) == 0
    assert says in fresh(row).message
    assert (row.eviction, row.not_before) == (Eviction.QUEUED, at(30))


def test_it_says_so_once(cluster: Cluster, cycle: Any) -> None:
    allowed(cluster, Eviction.EVICTED, cycle=cycle, accepted_at=NOW, settled_at=NOW)
    row = allowed(cluster, Eviction.QUEUED, cycle=cycle)
    for seconds in (0, 30, 60):
        claim(row, limits=Limits(total=1), seconds=seconds)
    assert row.events.count() == 1


@pytest.mark.parametrize(
    "other",
    [
        {"eviction": Eviction.GONE},
        {"eviction": Eviction.BLOCKED},
        {"eviction": Eviction.FAILED},
        {"eviction": Eviction.EVICTED, "accepted_at": None},
        {"eviction": Eviction.EVICTED, "accepted_at": NOW, "pod_uid": "u1", "asker": "caller:7"},
    ],
)
def test_what_was_not_accepted_takes_no_place(cluster: Cluster, cycle: Any, other: dict[str, Any]) -> None:
    allowed(cluster, **{"cycle": cycle, "settled_at": NOW, **other})
    row = allowed(cluster, Eviction.QUEUED, cycle=cycle, pod_uid="u1")
    assert claim(row, limits=Limits(total=1)) == 1


def test_evictions_of_other_cycles_take_no_place(cluster: Cluster, cycle: Any) -> None:
    allowed(cluster, Eviction.EVICTED, accepted_at=NOW, settled_at=NOW)
    assert claim(allowed(cluster, Eviction.QUEUED, cycle=cycle), limits=Limits(total=1)) == 1


def test_an_override_is_exempt_and_says_so(cluster: Cluster, cycle: Any) -> None:
    allowed(cluster, Eviction.EVICTED, cycle=cycle, accepted_at=NOW, settled_at=NOW)
    row = allowed(cluster, Eviction.QUEUED, cycle=cycle, override=True)
    assert claim(row, limits=Limits(total=1)) == 1
    assert "an override is exempt" in row.events.get(kind=Event.TRIED).reason


# --- the database holds the rules too ---------------------------------------------------------------------


@pytest.mark.parametrize("verdict", [Verdict.PENDING, Verdict.DENIED, Verdict.EXPIRED, Verdict.WITHDRAWN])
@pytest.mark.parametrize(
    "status", [Eviction.QUEUED, Eviction.BLOCKED, Eviction.ACCEPTED, Eviction.IN_BACKGROUND]
)
def test_no_eviction_without_an_allowed_verdict(cluster: Cluster, verdict: str, status: str) -> None:
    row = allowed(cluster, status)
    with pytest.raises(IntegrityError), transaction.atomic():
        Decision.objects.filter(pk=row.pk).update(verdict=verdict)


def test_no_two_evictions_of_one_pod(cluster: Cluster) -> None:
    allowed(cluster, Eviction.ACCEPTED, pod_uid="u1")
    with pytest.raises(IntegrityError), transaction.atomic():
        allowed(cluster, Eviction.QUEUED, pod_uid="u1", asker="caller:7")


def test_we_do_not_carry_out_what_its_asker_carries_out(cluster: Cluster) -> None:
    row = allowed(cluster, executor=Executor.ASKER)
    assert not evictions.queue(row.pk, not_before=NOW, now=NOW)
    with pytest.raises(IntegrityError), transaction.atomic():
        Decision.objects.filter(pk=row.pk).update(eviction=Eviction.QUEUED)


def test_a_lease_is_long_enough_for_three_calls() -> None:
    assert timedelta(seconds=3 * 30) <= evictions.LEASE
