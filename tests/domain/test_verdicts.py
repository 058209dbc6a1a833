"""Every arrow of a verdict, who may go it, and what refuses."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User

from decisions.models import (
    Caller,
    Cluster,
    Decision,
    DecisionEvent,
    Event,
    Eviction,
    Executor,
    Role,
    Rule,
    Verdict,
)
from decisions.services import access, evictions, freezes, verdicts
from decisions.services.actors import SYSTEM, Actor
from decisions.services.errors import Changed, Conflict, Invalid, NotAllowed
from decisions.services.verdicts import Recorded
from deschedui.extender.outcomes import DecidedBy, Effect, ExtenderOutcome, FailureMode
from tests.builders import FORECAST, NOW, at, make_ask, make_cluster, make_decision, make_user

pytestmark = pytest.mark.django_db
HOUR, DAY = 3600, 24 * 3600


def outcome(effect: Effect, **fields: Any) -> ExtenderOutcome:
    """What one extender's call came to."""
    defaults: dict[str, Any] = {
        "effect": effect,
        "decided_by": DecidedBy.ANSWER,
        "failure_mode": None,
        "reason": "peak hours",
        "detail": "",
        "http_status": 200,
        "latency_ms": 3.0,
        "url": "https://guard.example/evict",
        "fail_policy": "Deny",
        "ignorable": False,
    }
    return ExtenderOutcome(**{**defaults, **fields})


def with_outcome(effect: Effect, **fields: Any) -> dict[str, Any]:
    """The part of an ask that an extender's answer is."""
    one = outcome(effect, **fields)
    return {"outcome": one, "outcomes": (one,)}


def approve(row: Decision, by: User, *, seconds: float = 0, version: int = 1, undo: float = 0) -> Decision:
    return verdicts.approve(
        decision_id=row.pk, version=version, by=Actor.person(by), undo_seconds=undo, now=at(seconds)
    )


def deny(row: Decision, by: User, *, seconds: float = 0, **fields: Any) -> Decision:
    defaults = {"version": 1, "reason": "not during the sale", "now": at(seconds)}
    return verdicts.deny(decision_id=row.pk, by=Actor.person(by), **{**defaults, **fields})


def record(cluster: Cluster, *, seconds: float = 0, **fields: Any) -> verdicts.Record:
    return verdicts.record(ask=make_ask(cluster, **{"pod_uid": "u1", **fields}), now=at(seconds))


def fresh(row: Decision) -> Decision:
    row.refresh_from_db()
    return row


def last_line(row: Decision) -> DecisionEvent:
    line = row.events.last()
    assert line is not None
    return line


def kinds(row: Decision) -> list[str]:
    return [event.kind for event in row.events.all()]


# --- asking -----------------------------------------------------------------------------------------------


def test_a_nomination_waits_for_a_human(cluster: Cluster) -> None:
    recorded = record(cluster)
    assert recorded.what == Recorded.CREATED
    row = recorded.decision
    assert row is not None
    assert (row.verdict, row.eviction, row.expires_at) == (Verdict.PENDING, Eviction.NONE, at(HOUR))
    assert kinds(row) == [Event.ASKED]


def test_asking_again_is_a_line_of_the_timeline_and_not_a_second_decision(cluster: Cluster) -> None:
    record(cluster)
    again = record(cluster, seconds=300, reason="pod is 27h old, the policy allows at most 24h")
    assert again.what == Recorded.AGAIN
    row = Decision.objects.get()
    assert (row.nominated_count, row.version, row.expires_at) == (2, 1, at(HOUR))
    assert kinds(row) == [Event.ASKED, Event.NOMINATED_AGAIN]


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"node": "n2"}, "node"),
        ({"profile": "night"}, "profile"),
        ({"plugin": "RemovePodsViolatingNodeTaints"}, "plugin"),
        ({"forecast": {**FORECAST, "ready": 2}}, "forecast"),
        (with_outcome(Effect.ALLOW), "extender"),
        (with_outcome(Effect.SKIP, failure_mode=FailureMode.TIMEOUT), "extender"),
    ],
)
def test_what_a_reviewer_would_see_differently_is_a_new_version(
    cluster: Cluster, fields: dict[str, Any], name: str
) -> None:
    record(cluster)
    again = record(cluster, **fields)
    assert again.what == Recorded.CHANGED
    row = Decision.objects.get()
    assert (row.version, row.verdict) == (2, Verdict.PENDING)
    assert list(row.events.get(kind=Event.NOMINATED_AGAIN).detail["changes"]) == [name]


def test_other_askers_ask_for_themselves(cluster: Cluster) -> None:
    record(cluster)
    assert record(cluster, asker="caller:7").what == Recorded.CREATED
    assert Decision.objects.count() == 2


def test_an_extenders_denial_is_a_denial(cluster: Cluster) -> None:
    row = record(cluster, **with_outcome(Effect.DENY)).decision
    assert row is not None
    assert (row.verdict, row.rule, row.decision_reason) == (Verdict.DENIED, Rule.EXTENDER, "peak hours")
    assert kinds(row) == [Event.ASKED, Event.EXTENDER_ANSWERED]


def test_an_extenders_skip_is_left_alone_without_a_cooldown(cluster: Cluster) -> None:
    row = record(cluster, **with_outcome(Effect.SKIP, failure_mode=FailureMode.TIMEOUT)).decision
    assert row is not None
    assert (row.verdict, row.cooldown_until) == (Verdict.SKIPPED, None)
    assert kinds(row) == [Event.ASKED, Event.EXTENDER_FAILED, Event.SKIPPED]


def test_an_unchanged_denial_extends_the_last_row(cluster: Cluster) -> None:
    record(cluster, **with_outcome(Effect.DENY))
    assert record(cluster, seconds=300, **with_outcome(Effect.DENY, latency_ms=9.0)).what == Recorded.AGAIN
    assert Decision.objects.get().nominated_count == 2


def test_a_changed_denial_is_a_new_row(cluster: Cluster) -> None:
    record(cluster, **with_outcome(Effect.DENY))
    assert record(cluster, node="n2", **with_outcome(Effect.DENY)).what == Recorded.CREATED


def test_an_unchanged_denial_shows_the_newest_words(cluster: Cluster) -> None:
    record(cluster, **with_outcome(Effect.DENY, reason="busy for 5m"))
    record(cluster, seconds=300, **with_outcome(Effect.DENY, reason="busy for 10m"))
    row = Decision.objects.get()
    assert (row.decision_reason, row.extender_reason) == ("busy for 10m", "busy for 10m")
    assert row.extenders[0]["reason"] == "busy for 10m"
    assert kinds(row) == [Event.ASKED, Event.EXTENDER_ANSWERED]


def test_other_words_of_a_denial_are_a_line_of_its_timeline(cluster: Cluster) -> None:
    record(cluster, **with_outcome(Effect.DENY, reason="busy for 5m"))
    record(cluster, seconds=300, **with_outcome(Effect.DENY, reason="quota is used up"))
    row = Decision.objects.get()
    assert [line.reason for line in row.events.filter(kind=Event.EXTENDER_ANSWERED)] == [
        "busy for 5m",
        "quota is used up",
    ]


def test_an_extender_that_now_denies_denies_what_waits(cluster: Cluster) -> None:
    record(cluster)
    record(cluster, seconds=300, **with_outcome(Effect.DENY))
    row = Decision.objects.get()
    assert (row.verdict, row.rule, row.version) == (Verdict.DENIED, Rule.EXTENDER, 2)


def test_an_extender_that_now_denies_does_not_undo_a_humans_yes(cluster: Cluster, ada: User) -> None:
    record(cluster)
    approve(Decision.objects.get(), ada)
    record(cluster, seconds=1, **with_outcome(Effect.DENY))
    assert Decision.objects.get().verdict == Verdict.ALLOWED


# --- unattended -------------------------------------------------------------------------------------------

TIMED_OUT = {"decided_by": DecidedBy.IGNORABLE, "failure_mode": FailureMode.TIMEOUT, "ignorable": True}
OPEN_CIRCUIT = {**TIMED_OUT, "failure_mode": FailureMode.CIRCUIT_OPEN}


@pytest.mark.parametrize(
    ("unattended", "approval_required", "fields", "verdict"),
    [
        ("off", False, {}, Verdict.PENDING),
        ("answers", True, {}, Verdict.PENDING),
        ("answers", False, {}, Verdict.ALLOWED),
        ("failures", False, {}, Verdict.ALLOWED),
        ("off", False, TIMED_OUT, Verdict.PENDING),
        ("answers", False, TIMED_OUT, Verdict.PENDING),
        ("failures", False, TIMED_OUT, Verdict.ALLOWED),
        ("failures", True, TIMED_OUT, Verdict.PENDING),
        ("failures", False, OPEN_CIRCUIT, Verdict.PENDING),
    ],
)
def test_only_the_cluster_can_take_the_human_away(
    db: None, unattended: str, approval_required: bool, fields: dict[str, Any], verdict: str
) -> None:
    cluster = make_cluster("auto", overrides={"unattended": unattended})
    row = record(
        cluster, approval_required=approval_required, **with_outcome(Effect.ALLOW, **fields)
    ).decision
    assert row is not None
    assert (row.verdict, row.eviction) == (
        verdict,
        Eviction.QUEUED if verdict == Verdict.ALLOWED else Eviction.NONE,
    )


def test_a_freeze_comes_before_unattended(db: None) -> None:
    cluster = make_cluster("auto", overrides={"unattended": "failures"})
    freezes.freeze(cluster=None, by=SYSTEM, reason="incident", now=NOW)
    row = record(cluster, approval_required=False, **with_outcome(Effect.ALLOW)).decision
    assert row is not None
    assert row.verdict == Verdict.PENDING


# --- standing refusals ------------------------------------------------------------------------------------


def test_a_humans_denial_keeps_this_asker_from_this_pod(cluster: Cluster, ada: User) -> None:
    row = record(cluster).decision
    assert row is not None
    deny(row, ada)
    asked = record(cluster, seconds=DAY - 1)
    assert (asked.what, asked.decision) == (Recorded.COOLING, row)
    assert asked.sentence == "denied by ada: not during the sale, until 2026-12-01 03:00 UTC"


def test_when_it_is_over_it_is_asked_again(cluster: Cluster, ada: User) -> None:
    row = record(cluster).decision
    assert row is not None
    deny(row, ada)
    assert record(cluster, seconds=DAY).what == Recorded.CREATED


def test_a_no_to_one_asker_is_no_no_to_another(cluster: Cluster, ada: User) -> None:
    row = record(cluster).decision
    assert row is not None
    deny(row, ada)
    assert record(cluster, asker="caller:7").what == Recorded.CREATED


@pytest.mark.parametrize(("times", "pause"), [(1, HOUR), (2, 4 * HOUR), (3, DAY), (4, DAY)])
def test_who_gets_no_answer_asks_more_and_more_rarely(cluster: Cluster, times: int, pause: int) -> None:
    moment = 0
    for _ in range(times):
        record(cluster, seconds=moment)
        verdicts.expire_due(now=at(moment + HOUR))
        row = Decision.objects.latest("id")
        moment = int(((row.cooldown_until or NOW) - NOW).total_seconds())
    assert (row.unanswered, row.cooldown_until) == (times, row.updated_at + timedelta(seconds=pause))
    assert record(cluster, seconds=moment - 1).what == Recorded.UNANSWERED
    assert record(cluster, seconds=moment).what == Recorded.CREATED


@pytest.mark.parametrize("between", [Effect.SKIP, Effect.DENY])
def test_an_extender_in_between_does_not_make_it_the_first_time(cluster: Cluster, between: Effect) -> None:
    record(cluster)
    record(cluster, seconds=HOUR)
    record(cluster, seconds=2 * HOUR, **with_outcome(between))
    row = record(cluster, seconds=2 * HOUR + 300).decision
    verdicts.expire_due(now=at(4 * HOUR))
    assert row is not None
    assert (fresh(row).unanswered, row.cooldown_until) == (2, at(8 * HOUR))


def test_an_answer_does(cluster: Cluster, ada: User) -> None:
    record(cluster)
    record(cluster, seconds=HOUR)
    row = record(cluster, seconds=2 * HOUR).decision
    assert row is not None
    assert row.unanswered == 1
    deny(row, ada, seconds=2 * HOUR + 1, cooldown_seconds=0)
    again = record(cluster, seconds=2 * HOUR + 2).decision
    assert again is not None
    assert again.unanswered == 0


def test_the_third_time_is_said(cluster: Cluster) -> None:
    row = make_decision(cluster, verdict=Verdict.EXPIRED, unanswered=3, cooldown_until=at(DAY))
    assert "nobody answered (3rd time), asks again at 2026-12-01 03:00 UTC" in verdicts.refusal_sentence(row)


def test_an_ask_does_not_trust_the_sweep(cluster: Cluster) -> None:
    record(cluster)
    assert record(cluster, seconds=HOUR).what == Recorded.UNANSWERED
    assert Decision.objects.get().verdict == Verdict.EXPIRED


# --- how many may wait ------------------------------------------------------------------------------------


def test_a_cluster_has_so_many_waiting_at_a_time(db: None) -> None:
    cluster = make_cluster("small", overrides={"max_waiting": 2})
    for number in range(2):
        record(cluster, pod_uid=f"u{number}", owner_uid=f"o{number}")
    full = record(cluster, pod_uid="u9", owner_uid="o9")
    assert (full.what, full.decision) == (Recorded.TOO_MANY, None)
    assert full.sentence == "not recorded: 2 decisions wait already"


def test_an_owner_has_so_many_waiting_at_a_time(db: None) -> None:
    cluster = make_cluster("small", overrides={"max_waiting_per_owner": 1})
    record(cluster)
    assert (
        record(cluster, pod_uid="u2").sentence == "not recorded: 1 decisions of Deployment/web wait already"
    )
    assert record(cluster, pod_uid="u3", owner_uid="other").what == Recorded.CREATED


def test_a_denial_needs_no_room(db: None) -> None:
    cluster = make_cluster("small", overrides={"max_waiting": 1})
    record(cluster)
    assert record(cluster, pod_uid="u2", **with_outcome(Effect.DENY)).what == Recorded.CREATED


# --- approving --------------------------------------------------------------------------------------------


def test_an_approval_is_queued_and_says_by_whom(cluster: Cluster, ada: User) -> None:
    row = approve(make_decision(cluster), ada)
    assert (row.verdict, row.eviction, row.decided_by_name) == (Verdict.ALLOWED, Eviction.QUEUED, "ada")
    assert (row.rule, row.decided_by, row.decided_at) == (Rule.HUMAN, ada, NOW)


def test_an_approval_keeps_its_moment(cluster: Cluster, ada: User) -> None:
    row = approve(make_decision(cluster), ada)
    assert row.moment["ready"] == 3
    assert (row.moment["pdbs"], row.moment["node"]) == ({"web": 1}, "n1")


def test_an_approval_in_the_browser_can_be_undone_first(cluster: Cluster, ada: User) -> None:
    assert approve(make_decision(cluster), ada, undo=5).not_before == at(5)


def test_an_approval_where_the_caller_evicts_lasts_two_of_its_intervals(cluster: Cluster, ada: User) -> None:
    caller = Caller.objects.create(name="stock", cluster=cluster, interval_seconds=1800)
    row = make_decision(cluster, asker=caller.asker, caller=caller, executor=Executor.ASKER)
    row = approve(row, ada)
    assert (row.eviction, row.expires_at) == (Eviction.NONE, at(3600))


def test_and_at_least_a_quarter_of_an_hour(cluster: Cluster, ada: User) -> None:
    caller = Caller.objects.create(name="stock", cluster=cluster, interval_seconds=60)
    row = make_decision(cluster, asker=caller.asker, caller=caller, executor=Executor.ASKER)
    assert approve(row, ada).expires_at == at(900)


def test_the_second_of_two_who_approve_hears_who_was_first(cluster: Cluster, ada: User) -> None:
    row = make_decision(cluster)
    approve(row, ada)
    with pytest.raises(Conflict, match="Already approved by ada"):
        approve(row, make_user("grace", Role.APPROVER))
    assert kinds(row).count(Event.APPROVED) == 1


def test_what_expired_cannot_be_approved_even_before_the_sweep(cluster: Cluster, ada: User) -> None:
    row = make_decision(cluster, expires_at=at(10))
    with pytest.raises(Conflict, match="It expired: nobody answered in time"):
        approve(row, ada, seconds=10)


def test_what_changed_since_it_was_shown_is_refused_with_the_change(cluster: Cluster, ada: User) -> None:
    row = record(cluster).decision
    assert row is not None
    record(cluster, node="n2")
    with pytest.raises(Changed, match="node was n1, is now n2"):
        approve(row, ada)
    assert approve(row, ada, version=2).verdict == Verdict.ALLOWED


def test_several_changes_are_told_from_the_first_to_the_last(cluster: Cluster, ada: User) -> None:
    row = record(cluster).decision
    assert row is not None
    record(cluster, node="n2")
    record(cluster, node="n3")
    with pytest.raises(Changed) as refused:
        approve(row, ada)
    assert refused.value.changes == {"node": ("n1", "n3")}


@pytest.fixture
def strict(ada: User) -> Caller:
    """Ada's caller, on a cluster where nobody reviews their own."""
    cluster = make_cluster("strict", overrides={"prevent_self_review": True})
    return Caller.objects.create(name="stock", cluster=cluster, owner=ada)


@pytest.mark.parametrize("how", ["started the cycle", "owns the caller"])
def test_nobody_reviews_their_own_where_that_is_forbidden(db: None, ada: User, how: str) -> None:
    cluster = make_cluster("strict", overrides={"prevent_self_review": True})
    caller = Caller.objects.create(name="stock", cluster=cluster, owner=ada)
    cycle = cluster.cycles.create(
        kind="manual", state="completed", started_at=NOW, deadline_at=NOW, heartbeat_at=NOW, started_by=ada
    )
    asked = {"cycle": cycle} if how == "started the cycle" else {"caller": caller}
    row = make_decision(cluster, **asked)
    with pytest.raises(NotAllowed, match="somebody else has to review it"):
        approve(row, ada)
    assert approve(row, make_user("grace", Role.APPROVER)).verdict == Verdict.ALLOWED


def test_nor_does_a_token_of_theirs(strict: Caller, ada: User) -> None:
    until = NOW + timedelta(days=1)
    token, _ = access.create_api_token(owner=ada, name="ci", expires_at=until, by=SYSTEM, now=NOW)
    row, by = make_decision(strict.cluster, caller=strict), Actor.token(token)
    with pytest.raises(NotAllowed):
        verdicts.approve(decision_id=row.pk, version=1, by=by, undo_seconds=0, now=NOW)


def test_nor_do_they_override(strict: Caller, ada: User) -> None:
    row = make_decision(strict.cluster, caller=strict, verdict=Verdict.DENIED)
    with pytest.raises(NotAllowed):
        override(row, ada)


def test_denying_ones_own_is_nobodys_harm(strict: Caller, ada: User) -> None:
    assert deny(make_decision(strict.cluster, caller=strict), ada).verdict == Verdict.DENIED


def test_elsewhere_they_may(cluster: Cluster, ada: User) -> None:
    caller = Caller.objects.create(name="stock", cluster=cluster, owner=ada)
    assert approve(make_decision(cluster, caller=caller), ada).verdict == Verdict.ALLOWED


# --- denying ----------------------------------------------------------------------------------------------


def test_a_denial_has_a_reason_and_a_cooldown(cluster: Cluster, ada: User) -> None:
    row = deny(make_decision(cluster), ada)
    assert (row.verdict, row.decision_reason, row.cooldown_until) == (
        Verdict.DENIED,
        "not during the sale",
        at(DAY),
    )


@pytest.mark.parametrize("reason", ["", "   ", "\n"])
def test_a_denial_without_a_reason_is_refused(cluster: Cluster, ada: User, reason: str) -> None:
    with pytest.raises(Invalid, match="Say why"):
        deny(make_decision(cluster), ada, reason=reason)


def test_the_cooldown_can_be_chosen(cluster: Cluster, ada: User) -> None:
    assert deny(make_decision(cluster), ada, cooldown_seconds=60).cooldown_until == at(60)


@pytest.mark.parametrize("seconds", [-1, 31 * DAY])
def test_within_bounds(cluster: Cluster, ada: User, seconds: int) -> None:
    with pytest.raises(Invalid, match="between 0 seconds and 30 days"):
        deny(make_decision(cluster), ada, cooldown_seconds=seconds)


@pytest.mark.parametrize(
    "verdict", [Verdict.ALLOWED, Verdict.DENIED, Verdict.SKIPPED, Verdict.EXPIRED, Verdict.WITHDRAWN]
)
def test_only_what_is_pending_can_be_answered(cluster: Cluster, ada: User, verdict: str) -> None:
    row = make_decision(cluster, verdict=verdict)
    for answer in (approve, deny):
        with pytest.raises(Conflict, match="Already"):
            answer(row, ada)


@pytest.mark.parametrize(
    ("verdict", "sentence"),
    [
        (Verdict.ALLOWED, "Already approved by ada."),
        (Verdict.DENIED, "Already denied by ada."),
        (Verdict.EXPIRED, "Already expired."),
        (Verdict.WITHDRAWN, "Already withdrawn."),
    ],
)
def test_who_is_second_hears_what_it_came_to(cluster: Cluster, verdict: str, sentence: str) -> None:
    row = make_decision(
        cluster, verdict=verdict, rule=Rule.HUMAN, decided_by_name="ada", decision_reason="no"
    )
    assert verdicts.settled_sentence(row) == sentence


# --- undoing and taking back ------------------------------------------------------------------------------


def undo(row: Decision, by: User, *, seconds: float) -> Decision:
    return verdicts.undo(decision_id=row.pk, by=Actor.person(by), now=at(seconds))


def take_back(row: Decision, by: User, *, reason: str = "wrong pod", seconds: float = 60) -> Decision:
    return verdicts.take_back(decision_id=row.pk, by=Actor.person(by), reason=reason, now=at(seconds))


def test_an_approval_undone_in_time_is_pending_for_a_fresh_hour(cluster: Cluster, ada: User) -> None:
    row = approve(make_decision(cluster), ada, undo=5)
    row = undo(row, ada, seconds=4)
    assert (row.verdict, row.eviction, row.expires_at) == (Verdict.PENDING, Eviction.NONE, at(4 + HOUR))
    assert (row.decided_by, row.moment, row.cooldown_until) == (None, {}, None)


def test_what_was_undone_can_be_approved_again_in_its_new_version(cluster: Cluster, ada: User) -> None:
    row = undo(approve(make_decision(cluster), ada, undo=5), ada, seconds=4)
    with pytest.raises(Changed):
        approve(row, ada, seconds=5)
    row = approve(row, ada, seconds=6, version=2, undo=5)
    assert (row.verdict, row.eviction, row.not_before) == (Verdict.ALLOWED, Eviction.QUEUED, at(11))


def test_an_override_is_not_undone_into_something_that_anybody_may_approve(
    denied: Decision, ada: User
) -> None:
    override(denied, ada)
    with pytest.raises(Conflict, match="it can be taken back, with a reason"):
        undo(denied, ada, seconds=61)
    assert fresh(denied).eviction == Eviction.QUEUED


def test_after_that_it_is_too_late_to_undo(cluster: Cluster, ada: User) -> None:
    row = approve(make_decision(cluster), ada, undo=5)
    with pytest.raises(Conflict, match="Too late to undo"):
        undo(row, ada, seconds=5)
    assert fresh(row).eviction == Eviction.QUEUED


@pytest.mark.parametrize("status", [Eviction.EVICTING, Eviction.ACCEPTED, Eviction.IN_BACKGROUND])
def test_what_is_under_way_cannot_be_undone_or_taken_back(cluster: Cluster, ada: User, status: str) -> None:
    row = approve(make_decision(cluster), ada)
    Decision.objects.filter(pk=row.pk).update(eviction=status, lease_until=at(120))
    with pytest.raises(Conflict, match="Too late"):
        undo(row, ada, seconds=1)
    with pytest.raises(Conflict, match=f"Too late: its eviction is {status.replace('_', ' ')}"):
        take_back(row, ada)
    assert fresh(row).eviction == status


@pytest.mark.parametrize("status", [Eviction.NONE, Eviction.QUEUED, Eviction.BLOCKED])
def test_what_was_not_carried_out_can_be_taken_back(cluster: Cluster, ada: User, status: str) -> None:
    row = approve(make_decision(cluster), ada)
    Decision.objects.filter(pk=row.pk).update(eviction=status)
    row = take_back(row, ada)
    assert (row.verdict, row.eviction, row.cooldown_until) == (Verdict.DENIED, Eviction.NONE, at(60 + DAY))
    assert last_line(row).kind == Event.TAKEN_BACK


def test_taking_back_a_yes_that_a_caller_heard_says_that_it_may_have_acted(
    cluster: Cluster, ada: User
) -> None:
    row = approve(make_decision(cluster, asker="caller:7", executor=Executor.ASKER), ada)
    evictions.tell(row.pk, by=SYSTEM, now=at(1))
    row = take_back(row, ada)
    assert (row.verdict, row.eviction) == (Verdict.DENIED, Eviction.NONE)
    assert last_line(row).detail == {"caller_may_have_acted": True}


@pytest.mark.parametrize("status", [Eviction.EVICTED, Eviction.GONE, Eviction.FAILED])
def test_what_has_ended_cannot_be_taken_back(cluster: Cluster, ada: User, status: str) -> None:
    row = approve(make_decision(cluster), ada)
    Decision.objects.filter(pk=row.pk).update(eviction=status)
    with pytest.raises(Conflict, match="Too late"):
        take_back(row, ada)


def test_what_expired_cannot_be_taken_back_even_before_the_sweep(cluster: Cluster, ada: User) -> None:
    row = approve(make_decision(cluster), ada)
    Decision.objects.filter(pk=row.pk).update(expires_at=at(60))
    with pytest.raises(Conflict, match="It expired: it was not carried out in time"):
        take_back(row, ada)
    assert fresh(row).eviction == Eviction.QUEUED


def test_taking_back_needs_a_reason(cluster: Cluster, ada: User) -> None:
    row = approve(make_decision(cluster), ada)
    with pytest.raises(Invalid):
        take_back(row, ada, reason=" ")


def test_only_an_approval_can_be_taken_back(cluster: Cluster, ada: User) -> None:
    row = deny(make_decision(cluster), ada)
    with pytest.raises(Conflict, match="Already denied by ada"):
        take_back(row, ada)


# --- overriding -------------------------------------------------------------------------------------------


def override(row: Decision, by: User, *, exists: bool = True, reason: str = "I know better") -> Decision:
    return verdicts.override(
        decision_id=row.pk, by=Actor.person(by), reason=reason, pod_exists=exists, now=at(60)
    )


@pytest.fixture
def denied(cluster: Cluster) -> Decision:
    """An extender's denial."""
    row = record(cluster, **with_outcome(Effect.DENY)).decision
    assert row is not None
    return row


def test_a_human_overrides_a_denial_with_a_reason(denied: Decision, ada: User) -> None:
    row = override(denied, ada)
    assert (row.verdict, row.eviction, row.override) == (Verdict.ALLOWED, Eviction.QUEUED, True)
    assert (row.expires_at, row.decision_reason) == (at(60 + 4 * HOUR), "I know better")
    assert row.events.filter(kind=Event.OVERRIDDEN).get().by_id == ada.pk


def test_an_override_without_a_reason_is_refused(denied: Decision, ada: User) -> None:
    with pytest.raises(Invalid):
        override(denied, ada, reason="")


def test_an_override_needs_the_pod(denied: Decision, ada: User) -> None:
    with pytest.raises(Conflict, match="no longer exists"):
        override(denied, ada, exists=False)


def test_an_override_needs_an_armed_cluster(denied: Decision, ada: User) -> None:
    Cluster.objects.update(armed=False)
    with pytest.raises(Conflict, match="only observes"):
        override(denied, ada)


@pytest.mark.parametrize("verdict", [Verdict.PENDING, Verdict.EXPIRED, Verdict.WITHDRAWN, Verdict.SKIPPED])
def test_only_a_denial_can_be_overridden(cluster: Cluster, ada: User, verdict: str) -> None:
    with pytest.raises(Conflict, match="Only a denial can be overridden"):
        override(make_decision(cluster, verdict=verdict), ada)


def test_an_override_takes_the_place_of_what_is_open(denied: Decision, cluster: Cluster, ada: User) -> None:
    other = record(cluster, seconds=30).decision
    assert other is not None
    override(denied, ada)
    assert fresh(other).verdict == Verdict.WITHDRAWN
    assert f"decision {denied.pk} takes its place" in last_line(other).reason


def test_an_override_of_what_a_caller_heard_says_that_it_may_have_acted(
    denied: Decision, cluster: Cluster, ada: User
) -> None:
    told = make_decision(
        cluster,
        pod_uid="u1",
        verdict=Verdict.ALLOWED,
        eviction=Eviction.DELEGATED,
        executor=Executor.ASKER,
        expires_at=at(3600),
    )
    override(denied, ada)
    assert last_line(told).detail == {"caller_may_have_acted": True}


@pytest.mark.parametrize("status", [Eviction.EVICTING, Eviction.ACCEPTED, Eviction.IN_BACKGROUND])
def test_an_override_is_refused_while_that_one_is_under_way(
    denied: Decision, cluster: Cluster, ada: User, status: str
) -> None:
    make_decision(cluster, pod_uid="u1", verdict=Verdict.ALLOWED, eviction=status, lease_until=at(120))
    with pytest.raises(Conflict, match="is being carried out already"):
        override(denied, ada)
    assert fresh(denied).verdict == Verdict.DENIED


# --- by itself --------------------------------------------------------------------------------------------


def test_what_nobody_answers_expires(cluster: Cluster) -> None:
    row = make_decision(cluster, expires_at=at(10))
    assert verdicts.expire_due(now=at(9)) == 0
    assert verdicts.expire_due(now=at(10)) == 1
    assert (fresh(row).verdict, row.rule, row.cooldown_until) == (Verdict.EXPIRED, Rule.TIME, at(10 + HOUR))


@pytest.mark.parametrize("status", [Eviction.NONE, Eviction.QUEUED, Eviction.BLOCKED])
def test_an_approval_that_was_not_carried_out_in_time_expires(cluster: Cluster, status: str) -> None:
    row = make_decision(cluster, verdict=Verdict.ALLOWED, eviction=status, expires_at=at(10))
    verdicts.expire_due(now=at(10))
    assert (fresh(row).verdict, row.eviction, row.cooldown_until) == (Verdict.EXPIRED, Eviction.NONE, None)


def test_a_told_yes_expires_after_a_day(cluster: Cluster, ada: User) -> None:
    row = approve(make_decision(cluster, asker="caller:7", executor=Executor.ASKER), ada)
    evictions.tell(row.pk, by=SYSTEM, now=at(1))
    assert verdicts.expire_due(now=at(DAY)) == 0
    assert verdicts.expire_due(now=at(DAY + 1)) == 1
    assert last_line(row).reason == "its caller did not act on the yes"


@pytest.mark.parametrize("status", [Eviction.EVICTING, Eviction.ACCEPTED, Eviction.IN_BACKGROUND])
def test_what_is_under_way_does_not_expire(cluster: Cluster, status: str) -> None:
    row = make_decision(
        cluster, verdict=Verdict.ALLOWED, eviction=status, expires_at=at(10), lease_until=at(120)
    )
    assert verdicts.expire_due(now=at(DAY)) == 0
    assert fresh(row).verdict == Verdict.ALLOWED


def withdraw(row: Decision) -> int:
    rows = Decision.objects.filter(pk=row.pk)
    return verdicts.withdraw(decisions=rows, why="no plugin nominates it any more", now=NOW)


@pytest.mark.parametrize("status", [Eviction.NONE, Eviction.QUEUED, Eviction.BLOCKED])
def test_what_is_not_wanted_any_more_is_withdrawn(cluster: Cluster, status: str) -> None:
    row = make_decision(cluster, verdict=Verdict.ALLOWED, eviction=status)
    assert withdraw(row) == 1
    assert (fresh(row).verdict, row.eviction, row.rule) == (Verdict.WITHDRAWN, Eviction.NONE, Rule.CLUSTER)


@pytest.mark.parametrize(
    "status", [Eviction.EVICTING, Eviction.ACCEPTED, Eviction.IN_BACKGROUND, Eviction.EVICTED, Eviction.GONE]
)
def test_what_is_under_way_or_over_is_not(cluster: Cluster, status: str) -> None:
    row = make_decision(cluster, verdict=Verdict.ALLOWED, eviction=status, lease_until=at(120))
    assert withdraw(row) == 0
    assert fresh(row).verdict == Verdict.ALLOWED


@pytest.mark.parametrize("verdict", [Verdict.DENIED, Verdict.SKIPPED, Verdict.EXPIRED, Verdict.WITHDRAWN])
def test_what_is_settled_stays_settled(cluster: Cluster, verdict: str) -> None:
    row = make_decision(cluster, verdict=verdict)
    assert withdraw(row) == 0
    assert kinds(row) == []


def test_a_moment_that_is_over_asks_again(cluster: Cluster, ada: User) -> None:
    row = approve(make_decision(cluster), ada)
    changes = {"ready replicas": ("3 of 3", "2 of 3")}
    assert verdicts.back_to_pending(decision_id=row.pk, why="fewer are ready", changes=changes, now=at(60))
    assert (fresh(row).verdict, row.eviction, row.version) == (Verdict.PENDING, Eviction.NONE, 2)
    assert row.expires_at == at(60 + HOUR)


@pytest.mark.parametrize("status", [Eviction.EVICTING, Eviction.ACCEPTED, Eviction.EVICTED])
def test_what_is_under_way_does_not_go_back(cluster: Cluster, ada: User, status: str) -> None:
    row = approve(make_decision(cluster), ada)
    Decision.objects.filter(pk=row.pk).update(eviction=status, lease_until=at(120))
    assert not verdicts.back_to_pending(decision_id=row.pk, why="", changes={}, now=at(60))
    assert fresh(row).eviction == status


# --- telling ----------------------------------------------------------------------------------------------


def told(cluster: Cluster, ada: User) -> Decision:
    return approve(make_decision(cluster, asker="caller:7", executor=Executor.ASKER), ada)


def test_the_first_yes_is_on_record_before_it_is_heard(cluster: Cluster, ada: User) -> None:
    row = told(cluster, ada)
    assert evictions.tell(row.pk, by=SYSTEM, now=at(1))
    assert (fresh(row).eviction, row.told_at, row.expires_at) == (Eviction.DELEGATED, at(1), at(1 + DAY))


def test_repeats_are_counted_and_noted_now_and_then(cluster: Cluster, ada: User) -> None:
    row = told(cluster, ada)
    for seconds in (1, 11, 21, 71):
        assert evictions.tell(row.pk, by=SYSTEM, now=at(seconds))
    assert fresh(row).told_count == 4
    assert kinds(row).count(Event.TOLD) == 2


@pytest.mark.parametrize("verdict", [Verdict.PENDING, Verdict.DENIED, Verdict.EXPIRED, Verdict.WITHDRAWN])
def test_nobody_is_told_a_yes_that_is_none(cluster: Cluster, verdict: str) -> None:
    row = make_decision(cluster, asker="caller:7", executor=Executor.ASKER, verdict=verdict)
    assert not evictions.tell(row.pk, by=SYSTEM, now=NOW)


def test_nobody_is_told_a_yes_that_is_over(cluster: Cluster, ada: User) -> None:
    row = told(cluster, ada)
    assert not evictions.tell(row.pk, by=SYSTEM, now=at(900))


def test_a_denial_by_fail_policy_is_not_the_extenders_own(cluster: Cluster) -> None:
    failed = with_outcome(
        Effect.DENY, decided_by=DecidedBy.FAIL_POLICY, failure_mode=FailureMode.TIMEOUT, reason="no answer"
    )
    answered = with_outcome(Effect.DENY, decided_by=DecidedBy.ANSWER, failure_mode=None, reason="leader")
    names = [
        recorded.decision.decided_by_name
        for fields in (failed, answered)
        if (recorded := verdicts.record(ask=make_ask(cluster, **fields), now=NOW)).decision is not None
    ]
    assert names == ["failPolicy Deny", "Extender"]
