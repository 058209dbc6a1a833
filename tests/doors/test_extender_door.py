"""The extender door, row by row of its table: everything that is not a recorded yes is a no."""

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User

from decisions.models import Cluster, Decision, DecisionEvent, Event, Eviction, Executor, RoleBinding, Verdict
from decisions.services import access, clusters, evictions, freezes, moment, verdicts
from decisions.services.actors import SYSTEM, Actor
from decisions.services.lookups import Looked
from tests.builders import NOW, approver, at, make_cluster, make_decision
from tests.doors.edges import GONE, UID, UNREACHABLE, FakePod, ask, pod_body, register

pytestmark = pytest.mark.django_db


@pytest.fixture
def token(cluster: Cluster) -> str:
    return register(cluster)[1]


def approve(by: Actor | None = None) -> Decision:
    row = Decision.objects.get()
    return verdicts.approve(
        decision_id=row.pk, version=row.version, by=by or approver(), undo_seconds=0, now=NOW
    )


def test_an_unknown_pod_is_told_to_wait_and_becomes_one_pending_decision(token: str) -> None:
    first, second = ask(token), ask(token)
    assert first["allow"] is False
    assert first["reason"].startswith("waiting for approval, see http://testserver/d/")
    assert second["decision"] == first["decision"] == Decision.objects.get().pk


def test_a_pending_decision_shows_what_the_api_server_says(token: str) -> None:
    ask(token)
    row = Decision.objects.get()
    assert (row.workload, row.node, row.verified, row.executor) == (
        "Deployment/cart",
        "n1",
        True,
        Executor.ASKER,
    )


def test_an_approved_pod_is_a_yes_that_was_committed_before_it_was_said(token: str) -> None:
    ask(token)
    approve()
    answer = ask(token)
    row = Decision.objects.get()
    assert answer["allow"] is True
    assert (row.eviction, row.told_count) == (Eviction.DELEGATED, 1)


def test_a_repeated_question_is_the_same_yes_and_one_line_a_minute(token: str) -> None:
    ask(token)
    approve()
    answers = [ask(token, now=at(seconds))["allow"] for seconds in (0, 1, 2, 61)]
    assert answers == [True] * 4
    assert Decision.objects.get().told_count == 4
    assert DecisionEvent.objects.filter(kind=Event.TOLD).count() == 2


def test_a_told_yes_holds_for_a_day(token: str) -> None:
    ask(token)
    approve()
    ask(token)
    assert ask(token, now=NOW + timedelta(hours=23))["allow"] is True
    assert ask(token, now=NOW + timedelta(hours=25))["allow"] is False


def test_a_denied_pod_hears_who_and_why(token: str) -> None:
    ask(token)
    row = Decision.objects.get()
    verdicts.deny(decision_id=row.pk, version=1, by=approver(), reason="backup is running", now=NOW)
    answer = ask(token)
    assert answer["allow"] is False
    assert "ada" in answer["reason"]
    assert "backup is running" in answer["reason"]


def test_a_denial_is_for_this_asker_only(cluster: Cluster, token: str) -> None:
    make_decision(cluster, pod_uid=UID, verdict=Verdict.DENIED, cooldown_until=at(9999), expires_at=None)
    assert ask(token)["state"] == "pending"


def test_nobody_answered_says_when_it_asks_again(token: str) -> None:
    ask(token)
    verdicts.expire_due(now=at(3601))
    answer = ask(token, now=at(3700))
    assert answer["state"] == "unanswered"
    assert "nobody answered, asks again at" in answer["reason"]


def test_an_ask_that_finds_it_expired_before_the_sweep_says_so(token: str) -> None:
    ask(token)
    assert ask(token, now=at(3601))["state"] == "unanswered"


def test_after_the_back_off_it_asks_again_and_the_next_one_is_longer(token: str) -> None:
    ask(token)
    verdicts.expire_due(now=at(3601))
    assert ask(token, now=at(7300))["state"] == "pending"
    verdicts.expire_due(now=at(7300 + 3601))
    last = Decision.objects.latest("id")
    assert last.cooldown_until == at(7300 + 3601 + 4 * 3600)


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_finished_pod_is_a_no(token: str, phase: str) -> None:
    pod = FakePod(replace(FakePod().seen, phase=phase))
    assert "finished" in ask(token, pod=pod)["reason"]
    assert not Decision.objects.exists()


def test_a_terminating_pod_is_a_no(token: str) -> None:
    assert "terminating" in ask(token, pod=FakePod(replace(FakePod().seen, terminating=True)))["reason"]


def test_a_pod_that_is_gone_or_replaced_is_a_no(token: str) -> None:
    replaced = FakePod(replace(FakePod().seen, uid="another"))
    assert ask(token, pod=FakePod(GONE))["state"] == ask(token, pod=replaced)["state"] == "gone"
    assert not Decision.objects.exists()


def test_a_frozen_cluster_says_by_whom_and_why(cluster: Cluster, token: str) -> None:
    freezes.freeze(cluster=None, by=Actor("grace"), reason="black friday", now=NOW)
    answer = ask(token)
    assert answer["state"] == "frozen"
    assert "grace" in answer["reason"]
    assert "black friday" in answer["reason"]


def test_a_freeze_stops_a_yes_that_was_already_given(token: str) -> None:
    ask(token)
    approve()
    freezes.freeze(cluster=None, by=SYSTEM, reason="incident", now=NOW)
    assert ask(token)["allow"] is False
    assert Decision.objects.get().eviction == Eviction.NONE


def test_a_freeze_between_the_look_and_the_commit_still_stops_the_yes(token: str) -> None:
    ask(token)
    row = approve()
    freezes.freeze(cluster=row.cluster, by=SYSTEM, reason="incident", now=NOW)
    assert evictions.tell(row.pk, by=SYSTEM, now=NOW) is False


def test_a_cluster_that_nobody_armed_only_observes(cluster: Cluster, token: str) -> None:
    clusters.disarm(cluster=cluster, by=SYSTEM, now=NOW)
    assert "only observes" in ask(token)["reason"]
    assert not Decision.objects.exists()


def test_who_disarms_while_a_pod_is_looked_at_finds_nothing_recorded_afterwards(
    cluster: Cluster, token: str
) -> None:
    class Disarmed(FakePod):
        def around(self, looked: Looked) -> tuple[str, dict[str, Any]]:
            clusters.disarm(cluster=cluster, by=SYSTEM, now=NOW)
            return super().around(looked)

    assert "only observes" in ask(token, pod=Disarmed())["reason"]
    assert not Decision.objects.exists()


def test_a_pod_that_we_are_evicting_is_a_no_for_everybody(cluster: Cluster, token: str) -> None:
    fields = {"verdict": Verdict.ALLOWED, "eviction": Eviction.ACCEPTED}
    ours = make_decision(cluster, pod_uid=UID, **fields)
    answer = ask(token)
    assert answer["reason"] == f"is being evicted already (decision {ours.pk})"
    assert Decision.objects.count() == 1


def test_too_many_waiting_are_not_recorded(cluster: Cluster, token: str) -> None:
    clusters.change_settings(cluster=cluster, changes={"max_waiting": 1}, by=SYSTEM, now=NOW)
    make_decision(cluster)
    answer = ask(token)
    assert answer["reason"] == "not recorded: 1 decisions wait already"
    assert answer["decision"] is None


def test_a_pod_without_a_uid_is_a_no(token: str) -> None:
    answer = ask(token, pod_body(uid=None), pod=FakePod(UNREACHABLE))
    assert answer["reason"].startswith("pod.metadata.uid is missing")
    assert not Decision.objects.exists()


def test_a_name_is_looked_up(token: str) -> None:
    body = json.dumps({"podName": "cart-0", "podNamespace": "shop"}).encode()
    assert ask(token, body)["state"] == "pending"
    assert Decision.objects.get().pod_uid == UID


def test_a_claim_that_nobody_could_check_is_marked(token: str) -> None:
    ask(token, pod=FakePod(UNREACHABLE))
    assert Decision.objects.get().verified is False


@pytest.mark.parametrize(
    "fields",
    [
        {"spec": {"nodeName": "x" * 400}},
        {"spec": {"nodeName": "n\x001"}},
        {"owner": {"kind": "K\x00" * 50, "name": "n" * 400, "uid": "u" * 400}},
        {"owner": {"kind": "\ud800", "name": "", "uid": "\x00"}},
        {"labels": {"a\x00": "\x00"}},
    ],
)
def test_a_claim_may_say_what_it_likes(token: str, fields: dict[str, Any]) -> None:
    pod = json.loads(pod_body())["pod"]
    pod["spec"] |= fields.get("spec", {})
    pod["metadata"]["labels"] = fields.get("labels", {})
    if owner := fields.get("owner"):
        pod["metadata"]["ownerReferences"] = [{"apiVersion": "v1", "controller": True, **owner}]
    body = json.dumps({"pod": pod}).encode()
    answers = [ask(token, body, pod=FakePod(UNREACHABLE)) for _ in range(2)]
    assert {answer["state"] for answer in answers} <= {"pending", "refused"}
    assert not Decision.objects.filter(version__gt=1).exists()


def test_an_approval_is_not_told_while_the_pod_cannot_be_looked_up(token: str) -> None:
    ask(token)
    approve()
    assert ask(token, pod=FakePod(UNREACHABLE))["allow"] is False


def test_an_approval_belongs_to_its_moment(token: str) -> None:
    ask(token)
    approve()
    answer = ask(token, pod=FakePod(now=moment.Now(ready=2, desired=3)))
    row = Decision.objects.get()
    assert answer["allow"] is False
    assert (row.verdict, row.version) == (Verdict.PENDING, 2)
    assert "2 of 3" in answer["reason"]


def test_an_approver_who_lost_the_right_approved_nothing(token: str, ada: User) -> None:
    ask(token)
    approve(Actor.person(ada))
    RoleBinding.objects.all().delete()
    answer = ask(token)
    row = Decision.objects.get()
    assert answer["reason"] == "waiting for approval again: ada may no longer decide here"
    assert (row.verdict, row.eviction, row.version) == (Verdict.PENDING, Eviction.NONE, 2)


def test_once_heard_a_yes_stays_one(token: str, ada: User) -> None:
    ask(token)
    approve(Actor.person(ada))
    ask(token)
    assert ask(token, pod=FakePod(now=moment.Now(ready=1, desired=3)))["allow"] is True


def test_but_not_once_its_approver_lost_the_right(token: str, ada: User) -> None:
    ask(token)
    approve(Actor.person(ada))
    assert ask(token)["allow"] is True
    RoleBinding.objects.all().delete()
    answer = ask(token)
    said = Decision.objects.get().events.last()
    assert (answer["allow"], answer["state"]) == (False, "pending")
    assert said is not None
    assert said.detail["caller_may_have_acted"] is True


def test_an_approval_that_was_taken_back_is_a_no_to_who_heard_it(token: str) -> None:
    ask(token)
    row = approve()
    ask(token)
    verdicts.take_back(decision_id=row.pk, by=Actor("grace"), reason="wait for the release", now=at(60))
    answer = ask(token, now=at(61))
    assert (answer["allow"], answer["state"]) == (False, "denied")
    assert answer["reason"].startswith("denied by grace: wait for the release, until")


def test_an_approval_that_was_undone_waits_again(token: str) -> None:
    ask(token)
    row = approve()
    ask(token)
    verdicts.undo(decision_id=row.pk, by=Actor("grace"), now=at(4))
    assert ask(token, now=at(5))["state"] == "pending"
    line = row.events.get(kind=Event.UNDONE)
    assert line.detail == {"caller_may_have_acted": True}


def test_an_unscheduled_pod_has_no_node(token: str) -> None:
    pod = FakePod(replace(FakePod().seen, node="", phase="Pending"))
    ask(token, pod_body(node=None, phase="Pending"), pod=pod)
    assert Decision.objects.get().node == ""


def test_keys_are_read_in_any_case(token: str) -> None:
    body = pod_body().replace(b'"pod"', b'"Pod"').replace(b'"node"', b'"NODE"')
    assert ask(token, body)["state"] == "pending"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b"not json",
        b'{"pod": 5}',
        b'{"pod": {"metadata": []}}',
        b'{"pod": {"metadata": {"uid": "u", "name": "../secrets", "namespace": "shop"}}}',
        b'{"pod": {"metadata": {"uid": 7, "name": "cart-0", "namespace": "shop"}}}',
        b'{"podName": "a/b"}',
        b"[" * 100_000,
        b"\xff\xfe{}",
    ],
)
def test_a_body_that_is_not_understood_is_a_no_and_says_why(token: str, body: bytes) -> None:
    answer = ask(token, body or b" ")
    assert answer["allow"] is False
    assert answer["reason"].startswith("not understood")
    assert not Decision.objects.exists()


def test_an_unknown_token_is_a_no(db: None) -> None:
    assert ask("dui_nobody")["reason"] == "unknown token"
    assert ask("")["reason"].startswith("no token")


def test_a_revoked_caller_is_a_no(cluster: Cluster) -> None:
    caller, token = register(cluster)
    access.revoke_caller(caller_id=caller.pk, by=SYSTEM, now=NOW)
    assert ask(token)["reason"] == "this token was revoked"


def test_an_expired_token_is_a_no(cluster: Cluster) -> None:
    caller, _ = register(cluster)
    _, token = access.issue_caller_token(caller=caller, expires_at=at(60), by=SYSTEM, now=NOW)
    assert "expired" in ask(token, now=at(61))["reason"]


def test_the_path_takes_a_token_only_where_an_admin_allowed_it(cluster: Cluster) -> None:
    _, barred = register(cluster)
    _, allowed = register(cluster, name="old-one", path_token_allowed=True)
    assert "may not stand in the path" in ask_by_path(barred)["reason"]
    assert ask_by_path(allowed)["state"] == "pending"


def ask_by_path(token: str) -> dict[str, Any]:
    from decisions.doors import extender

    knock = extender.Knock("POST", (token, "evict"), "", "10.0.0.7")
    return extender.answer(knock, pod_body(), now=NOW, edge_for=lambda _caller, _question: FakePod())


def test_a_caller_asks_with_the_verb_it_is_registered_with(cluster: Cluster) -> None:
    _, token = register(cluster, verb="may-i")
    assert ask(token)["reason"] == "this caller is registered with the verb may-i"
    assert ask(token, path=("may-i",))["state"] == "pending"


def test_a_token_bound_to_networks_works_from_there_only(cluster: Cluster) -> None:
    _, token = register(cluster, networks=["10.0.0.0/8"])
    assert ask(token, address="192.0.2.1")["allow"] is False
    assert ask(token, address="192.0.2.1")["reason"] == "this token may not be used from this address"
    assert ask(token, address="10.1.2.3")["state"] == "pending"


def test_get_is_a_no(token: str) -> None:
    assert ask(token, method="GET")["reason"] == "ask with POST"


def test_two_clusters_keep_their_pods_apart(token: str) -> None:
    other = make_cluster("staging")
    _, token_there = register(other)
    ask(token)
    ask(token_there)
    assert Decision.objects.count() == 2
