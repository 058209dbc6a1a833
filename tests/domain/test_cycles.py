"""A cycle from its policy to its decisions."""

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from django.contrib.auth.models import User
from django.db import OperationalError

from decisions.models import (
    Cluster,
    Cycle,
    CycleKind,
    CycleState,
    Decision,
    Event,
    Eviction,
    Executor,
    Rule,
    Verdict,
    documents,
)
from decisions.services import clusters, cycles, freezes, verdicts
from decisions.services.actors import SYSTEM, Actor
from deschedui.kube.errors import Forbidden, Unauthorized, Unreachable
from tests.builders import NOW, approver, at
from tests.domain.cycle_world import Runs, World, extender_args, old_pod, policy_text
from tests.engine import builders as engine

pytestmark = pytest.mark.django_db


@pytest.fixture
def runs(cluster: Cluster, tmp_path: Path) -> Runs:
    made = Runs(cluster, tmp_path)
    made.policy(policy_text())
    return made


def lines(cycle: Cycle) -> list[documents.Nominated]:
    return documents.unpack(cycle.document).nominations


# --- a human is the extender ------------------------------------------------------------------------------


def test_an_old_pod_waits_for_a_human(runs: Runs) -> None:
    cycle = runs.run()
    row = Decision.objects.get()
    assert (cycle.state, cycle.error) == (CycleState.COMPLETED, "")
    assert (row.verdict, row.pod_name, row.node, row.plugin) == (
        Verdict.PENDING,
        "web-1",
        "n1",
        "PodLifeTime",
    )
    assert (row.executor, row.cycle, row.policy, row.expires_at) == (
        Executor.US,
        cycle,
        cycle.policy,
        at(3600),
    )


def test_the_decision_says_why_and_what_would_happen(runs: Runs) -> None:
    runs.run()
    row = Decision.objects.get()
    assert "30h" in row.reason or "1d" in row.reason
    assert row.forecast["fits_on"] == ["n2"]


def test_the_workload_is_the_deployment_behind_the_replica_set(runs: Runs) -> None:
    runs.world.others = {"replica_sets": [engine.build_replica_set("web", deployment="web")]}
    runs.run()
    row = Decision.objects.get()
    assert (row.owner_kind, row.owner_name, row.workload) == ("ReplicaSet", "web", "Deployment/web")


def test_a_young_pod_is_left_alone_and_counted(runs: Runs) -> None:
    runs.world.pods = [old_pod(age=engine.HOUR)]
    cycle = runs.run()
    assert cycle.counts["pods"] == 1
    assert not Decision.objects.exists()


def test_what_is_filtered_out_is_listed_with_its_reason(runs: Runs) -> None:
    runs.world.pods = [old_pod("agent-1", owner=engine.owned_by("agent", kind="DaemonSet"))]
    document = documents.unpack(runs.run().document)
    assert document.filtered[0].name == "agent-1"
    assert document.reasons[0].words == "DaemonSet pods"
    assert document.reasons[0].by_namespace == {"shop": 1}


def test_steps_and_their_times_are_kept(runs: Runs) -> None:
    cycle = runs.run()
    assert [step["name"] for step in cycle.steps] == ["policy", "list", "plan", "ask", "record"]
    assert cycle.steps[1]["detail"] == "2 nodes, 1 pods"


def test_pod_and_node_are_kept_as_they_were_without_secrets(runs: Runs) -> None:
    runs.world.pods[0]["spec"]["containers"][0]["env"] = [{"name": "PASSWORD", "value": "hunter2"}]
    runs.run()
    row = Decision.objects.select_related("pod_snapshot", "node_snapshot").get()
    assert row.pod_snapshot is not None
    assert row.node_snapshot is not None
    assert b"hunter2" not in bytes(row.pod_snapshot.body)


def test_a_pod_nominated_again_stays_one_decision(runs: Runs) -> None:
    runs.run()
    runs.clock.forward(minutes=5)
    runs.run()
    row = Decision.objects.get()
    assert (row.nominated_count, row.pod_snapshot_id is not None) == (2, True)


def test_a_finished_cycle_is_not_run_again(runs: Runs) -> None:
    cycle = runs.run()
    runs.finish(cycle)
    assert runs.world.listed == 1


# --- what the record says ---------------------------------------------------------------------------------


def test_a_humans_denial_is_respected_and_shown(runs: Runs) -> None:
    runs.run()
    row = Decision.objects.get()
    verdicts.deny(decision_id=row.pk, version=1, by=approver(), reason="black friday", now=NOW)
    runs.clock.forward(minutes=5)
    (line,) = lines(runs.run())
    assert (line.state, line.decision) == ("denied", row.pk)
    assert "denied by ada: black friday" in line.why
    assert Decision.objects.count() == 1


def test_an_unanswered_pod_is_filtered_out_until_it_is_asked_again(runs: Runs) -> None:
    runs.run()
    runs.clock.forward(minutes=61)
    verdicts.expire_due(now=runs.clock.at)
    document = documents.unpack(runs.run().document)
    assert document.reasons[0].check == "record"
    assert "nobody answered, asks again at 2026-11-30 05:01 UTC" in document.sentences
    runs.clock.forward(minutes=61)
    runs.run()
    assert Decision.objects.filter(verdict=Verdict.PENDING).count() == 1


def test_a_pod_that_is_evicted_for_somebody_else_is_left_alone(runs: Runs) -> None:
    uid = runs.world.pods[0]["metadata"]["uid"]
    runs.run()
    Decision.objects.update(asker="caller:1", verdict=Verdict.ALLOWED, eviction=Eviction.ACCEPTED)
    runs.run()
    assert Decision.objects.filter(pod_uid=uid).count() == 1


def test_an_approved_pod_keeps_its_decision_while_it_is_nominated(runs: Runs) -> None:
    runs.run()
    verdicts.approve(decision_id=Decision.objects.get().pk, version=1, by=approver(), undo_seconds=0, now=NOW)
    (line,) = lines(runs.run())
    assert line.state == "allowed"
    assert "allowed by ada" in line.why
    assert Decision.objects.get().verdict == Verdict.ALLOWED


def test_a_blocked_eviction_leaves_its_limit_to_others(runs: Runs) -> None:
    runs.policy(policy_text(top="maxNoOfPodsToEvictTotal: 1\n"))
    runs.run()
    Decision.objects.update(verdict=Verdict.ALLOWED, eviction=Eviction.BLOCKED, pdb="web")
    runs.world.pods.append(old_pod("web-2"))
    runs.run()
    assert sorted(Decision.objects.values_list("pod_name", "verdict")) == [
        ("web-1", "allowed"),
        ("web-2", "pending"),
    ]


def test_a_limit_filled_by_a_waiting_decision_says_which(runs: Runs) -> None:
    runs.policy(policy_text(top="maxNoOfPodsToEvictTotal: 1\n"))
    runs.run()
    runs.world.pods.append(old_pod("web-2"))
    cycle = runs.run()
    (limit,) = cycle.limits
    assert (limit["kind"], limit["heldBack"], limit["filledBy"]) == ("total", 1, [Decision.objects.get().pk])


def test_only_so_many_wait_and_the_rest_is_counted(runs: Runs) -> None:
    Cluster.objects.update(overrides={"max_waiting": 3})
    runs.world.pods = [
        old_pod(f"web-{number}", owner=engine.owned_by(f"rs-{number}")) for number in range(10)
    ]
    cycle = runs.run()
    assert Decision.objects.count() == 3
    assert cycle.counts["held_back"] == 7
    assert next(limit for limit in cycle.limits if limit["kind"] == "waiting")["heldBack"] == 7


def test_only_so_many_of_one_owner_wait(runs: Runs) -> None:
    Cluster.objects.update(overrides={"max_waiting_per_owner": 2})
    runs.world.pods = [old_pod(f"web-{number}") for number in range(5)]
    cycle = runs.run()
    assert Decision.objects.count() == 2
    (limit,) = cycle.limits
    assert (limit["kind"], limit["name"], limit["heldBack"]) == ("owner", "ReplicaSet/web", 3)


# --- what is no longer wanted -----------------------------------------------------------------------------


def test_what_no_plugin_nominates_any_more_is_withdrawn(runs: Runs) -> None:
    runs.run()
    runs.policy(policy_text(seconds=999_999))
    cycle = runs.run()
    row = Decision.objects.get()
    assert row.verdict == Verdict.WITHDRAWN
    assert f"no plugin nominates it any more (cycle {cycle.pk})" in row.events.values_list(
        "reason", flat=True
    )


def test_an_override_is_not_withdrawn(runs: Runs) -> None:
    runs.run()
    Decision.objects.update(verdict=Verdict.ALLOWED, override=True)
    runs.policy(policy_text(seconds=999_999))
    runs.run()
    assert Decision.objects.get().verdict == Verdict.ALLOWED


def test_what_is_being_evicted_is_not_withdrawn(runs: Runs) -> None:
    runs.run()
    Decision.objects.update(verdict=Verdict.ALLOWED, eviction=Eviction.ACCEPTED)
    runs.policy(policy_text(seconds=999_999))
    runs.run()
    assert Decision.objects.get().verdict == Verdict.ALLOWED


def test_another_askers_wish_is_not_withdrawn(runs: Runs) -> None:
    runs.run()
    Decision.objects.update(asker="caller:1")
    runs.policy(policy_text(seconds=999_999))
    runs.run()
    assert Decision.objects.get().verdict == Verdict.PENDING


def test_a_cycle_that_failed_withdraws_nothing(runs: Runs) -> None:
    runs.run()
    runs.policy(policy_text(seconds=999_999))
    runs.world.error = Unreachable("no answer from 10.0.0.1")
    runs.run()
    assert Decision.objects.get().verdict == Verdict.PENDING


def test_a_cluster_with_one_node_withdraws_nothing_and_says_why(runs: Runs) -> None:
    runs.run()
    runs.world.nodes.pop()
    cycle = runs.run()
    assert "needs at least 2 ready nodes" in str(cycle.warnings)
    assert Decision.objects.get().verdict == Verdict.PENDING


def test_a_cycle_whose_database_went_away_ends_when_it_is_back(runs: Runs) -> None:
    """Found by a campaign: it stayed running for a minute, and no other could start."""
    cycle, away = runs.start(), Away(runs)
    with pytest.raises(OperationalError):
        cycles.run(cycle.pk, client=away, now=away.now, sleep=away.sleep)
    cycle.refresh_from_db()
    assert (cycle.state, away.slept) == (CycleState.FAILED, [0.5, 1.0])
    assert runs.run().state == CycleState.COMPLETED


class Away(World):
    """A cluster during whose listing the database goes away; it is back after two pauses."""

    def __init__(self, runs: Runs) -> None:
        super().__init__()
        self._clock, self._is_away = runs.clock, False
        self.slept: list[float] = []

    def snapshot_lists(self, *args: Any, **kwargs: Any) -> Any:
        self._is_away = True
        return self.now()

    def now(self) -> datetime:
        if self._is_away:
            raise OperationalError("the connection is closed")
        return self._clock()

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self._is_away = len(self.slept) < 2


# --- extenders --------------------------------------------------------------------------------------------


def test_an_extenders_yes_waits_for_a_human(runs: Runs) -> None:
    runs.policy(policy_text(extender=extender_args()))
    runs.run()
    row = Decision.objects.get()
    assert (row.verdict, row.extender_effect, row.extender_reason) == (Verdict.PENDING, "allow", "fine")


def test_an_extender_gets_the_pod_and_its_node(runs: Runs) -> None:
    runs.world.pods[0]["metadata"]["managedFields"] = [{"manager": "kubelet"}]
    runs.policy(policy_text(extender=extender_args()))
    runs.run()
    (body,) = runs.extender.bodies
    assert (body["pod"]["metadata"]["name"], body["node"]["metadata"]["name"]) == ("web-1", "n1")
    assert "managedFields" not in body["pod"]["metadata"]


def test_an_extender_that_wants_references_gets_only_those(runs: Runs) -> None:
    runs.policy(policy_text(extender=extender_args(podReferenceOnly=True)))
    runs.run()
    assert runs.extender.bodies == [{"podName": "web-1", "podNamespace": "shop"}]


def test_an_extenders_no_is_a_denial_that_a_human_may_override(runs: Runs) -> None:
    runs.extender.says = lambda _name: {"allow": False, "reason": "quorum"}
    runs.policy(policy_text(extender=extender_args()))
    cycle = runs.run()
    row = Decision.objects.get()
    assert (row.verdict, row.rule, row.decision_reason) == (Verdict.DENIED, Rule.EXTENDER, "quorum")
    assert (cycle.counts["asked"], cycle.counts["denied"]) == (1, 1)


def test_an_extender_that_now_denies_denies_what_waits(runs: Runs) -> None:
    runs.policy(policy_text(extender=extender_args()))
    runs.run()
    runs.extender.says = lambda _name: {"allow": False, "reason": "not now"}
    runs.run()
    assert Decision.objects.get().verdict == Verdict.DENIED


def test_an_extender_is_not_asked_about_what_a_human_approved(runs: Runs) -> None:
    runs.policy(policy_text(extender=extender_args()))
    runs.run()
    verdicts.approve(decision_id=Decision.objects.get().pk, version=1, by=approver(), undo_seconds=0, now=NOW)
    runs.run()
    assert len(runs.extender.bodies) == 1


def test_a_denied_nomination_is_still_nominated(runs: Runs) -> None:
    runs.extender.says = lambda _name: {"allow": False}
    runs.policy(policy_text(extender=extender_args()))
    runs.run()
    runs.run()
    row = Decision.objects.get()
    assert (row.verdict, row.nominated_count) == (Verdict.DENIED, 2)


def test_an_answer_without_a_human_needs_the_clusters_consent(runs: Runs) -> None:
    runs.policy(policy_text(extender=extender_args(), approval="NotRequired"))
    runs.run()
    assert Decision.objects.get().verdict == Verdict.PENDING


def test_an_answer_is_final_where_plugin_and_cluster_agree(runs: Runs) -> None:
    Cluster.objects.update(overrides={"unattended": "answers"})
    runs.policy(policy_text(extender=extender_args(), approval="NotRequired"))
    runs.run()
    row = Decision.objects.get()
    assert (row.verdict, row.rule, row.eviction) == (Verdict.ALLOWED, Rule.UNATTENDED, Eviction.QUEUED)


def test_a_freeze_makes_an_unattended_yes_wait(runs: Runs) -> None:
    Cluster.objects.update(overrides={"unattended": "answers"})
    freezes.freeze(cluster=runs.cluster, by=Actor(name="root"), reason="incident 7", now=NOW)
    runs.policy(policy_text(extender=extender_args(), approval="NotRequired"))
    cycle = runs.run()
    assert Decision.objects.get().verdict == Verdict.PENDING
    assert "Frozen by root since 2026-11-30 03:00 UTC: incident 7" in cycle.warnings


def test_a_skip_leaves_the_pod_alone_this_cycle(runs: Runs) -> None:
    runs.extender.says = lambda _name: 503
    runs.policy(policy_text(extender=extender_args(failPolicy="Ignore")))
    runs.run()
    row = Decision.objects.get()
    assert (row.verdict, row.failure_mode) == (Verdict.SKIPPED, "http_status")


def test_a_dead_extender_is_left_alone_after_five_failures(runs: Runs) -> None:
    runs.extender.says = lambda _name: httpx.ConnectError("refused")
    runs.policy(policy_text(extender=extender_args(ignorable=True)))
    runs.world.pods = [old_pod(f"web-{number}") for number in range(8)]
    runs.run()
    modes = list(Decision.objects.order_by("id").values_list("failure_mode", flat=True))
    assert modes == ["connection"] * 5 + ["circuit_open"] * 3
    assert len(runs.extender.bodies) == 5


def test_an_extender_that_fails_now_and_then_is_asked_about_all(runs: Runs) -> None:
    runs.extender.says = lambda name: 500 if name == "web-4" else {"allow": False}
    runs.policy(policy_text(extender=extender_args()))
    runs.world.pods = [old_pod(f"web-{number}") for number in range(12)]
    runs.run()
    assert len(runs.extender.bodies) == 12


def test_an_open_circuit_never_evicts_without_a_human(runs: Runs) -> None:
    Cluster.objects.update(overrides={"unattended": "failures"})
    runs.extender.says = lambda _name: httpx.ConnectError("refused")
    runs.policy(policy_text(extender=extender_args(ignorable=True), approval="NotRequired"))
    runs.world.pods = [old_pod(f"web-{number}") for number in range(6)]
    runs.run()
    rows = Decision.objects.order_by("id").values_list("failure_mode", "verdict")
    assert list(rows) == [("connection", Verdict.ALLOWED)] * 5 + [("circuit_open", Verdict.PENDING)]


def test_a_second_profile_may_want_what_the_first_ones_extender_denied(runs: Runs) -> None:
    runs.extender.says = lambda _name: {"allow": False}
    first, second = policy_text(extender=extender_args()), policy_text()
    both = first.rstrip()[:-1] + ", " + second.split("profiles: [")[1]
    runs.policy(both.replace('"name": "default"', '"name": "gated"', 1))
    runs.run()
    row = Decision.objects.get()
    assert (row.verdict, row.profile) == (Verdict.PENDING, "default")


# --- what ends a cycle ------------------------------------------------------------------------------------


def test_an_extender_that_cannot_be_built_ends_the_cycle_before_anything(runs: Runs) -> None:
    tls = {"caCertFile": "/nowhere/ca.crt"}
    runs.policy(policy_text(extender=extender_args(tlsConfig=tls)))
    cycle = runs.run()
    assert (cycle.state, cycle.failure_mode) == (CycleState.FAILED, "config_error")
    assert "profile default: " in cycle.error
    assert "caCertFile" in cycle.error
    assert runs.world.listed == 0


def test_masked_headers_of_the_last_good_policy_end_the_cycle(runs: Runs) -> None:
    runs.policy(policy_text(extender=extender_args(httpHeaders={"Authorization": "Bearer s3cret"})))
    assert runs.run().state == CycleState.COMPLETED
    runs.policy("kind: DeschedulerPolicy\nprofiles: [{")
    cycle = runs.run()
    assert (cycle.state, cycle.failure_mode) == (CycleState.FAILED, "config_error")
    assert "profile default: Authorization" in cycle.error


def test_a_bad_policy_leaves_the_last_good_one_running_and_says_so(runs: Runs) -> None:
    runs.run()
    runs.policy("apiVersion: descheduler/v1alpha2\nkind: DeschedulerPolicy\nprofiles: [{")
    cycle = runs.run()
    assert (cycle.state, cycle.policy and cycle.policy.number) == (CycleState.COMPLETED, 1)
    assert "Version 1, the last good one, runs" in cycle.warnings[0]


def test_a_cluster_without_any_policy_says_so(cluster: Cluster, tmp_path: Path) -> None:
    cycle = Runs(cluster, tmp_path).run()
    assert cycle.state == CycleState.FAILED
    assert "There is no policy" in cycle.error


@pytest.mark.parametrize(
    ("error", "advice"),
    [
        (Unreachable("no answer from https://10.0.0.1"), "The next cycle tries again"),
        (Unauthorized("the credentials were refused", status=401), "Renew the credentials"),
        (Forbidden("pods is forbidden", verb="list", resource="pods"), "the right to list pods"),
    ],
)
def test_a_cluster_that_cannot_be_listed_says_what_to_do(runs: Runs, error: Exception, advice: str) -> None:
    runs.world.error = error
    cycle = runs.run()
    assert cycle.state == CycleState.FAILED
    assert advice in cycle.error


def test_a_cluster_that_cannot_be_reached_is_marked_until_it_answers(runs: Runs) -> None:
    runs.world.error = Unreachable("no answer from https://10.0.0.1")
    runs.run()
    assert "no answer" in Cluster.objects.get().problem
    runs.world.error = None
    runs.run()
    assert Cluster.objects.get().problem == ""


def test_a_priority_class_that_does_not_exist_ends_the_cycle(runs: Runs) -> None:
    evictor = '{"name": "DefaultEvictor", "args": {"priorityThreshold": {"name": "gold"}}}, '
    runs.policy(policy_text().replace('"pluginConfig": [', f'"pluginConfig": [{evictor}'))
    cycle = runs.run()
    assert cycle.state == CycleState.FAILED
    assert "Make the PriorityClass gold in the cluster" in cycle.error


def test_what_was_not_asked_in_time_is_skipped_and_said(runs: Runs) -> None:
    def slow(_name: str) -> dict[str, object]:
        runs.clock.forward(seconds=150)
        return {"allow": True}

    runs.extender.says = slow
    runs.policy(policy_text(extender=extender_args()))
    runs.world.pods = [old_pod(f"web-{number}") for number in range(8)]
    cycle = runs.run()
    assert (cycle.state, cycle.unasked) == (CycleState.INCOMPLETE, 3)
    assert "3 nominated pods were not asked about" in cycle.error
    assert lines(cycle)[-1].state == "unasked"


def test_a_listing_that_takes_too_long_ends_the_cycle(runs: Runs) -> None:
    cycle = runs.start()
    runs.clock.tick = timedelta(minutes=4)
    runs.finish(cycle)
    assert cycle.state == CycleState.INCOMPLETE
    assert "could not be listed before the cycle's deadline" in cycle.error


def test_waiting_for_a_worker_does_not_use_up_a_cycles_time(runs: Runs) -> None:
    cycle = runs.start()
    runs.clock.forward(minutes=9)
    runs.finish(cycle)
    assert (cycle.state, cycle.deadline_at) == (CycleState.COMPLETED, at(19 * 60))


def test_disarming_in_the_middle_records_nothing_more(runs: Runs) -> None:
    cycle = runs.start()
    clusters.disarm(cluster=runs.cluster, by=Actor(name="root"), now=NOW)
    runs.finish(cycle)
    assert (cycle.state, Decision.objects.count()) == (CycleState.FAILED, 0)
    assert "was disarmed" in cycle.error


def test_a_mistake_of_ours_ends_the_cycle_and_is_not_hidden(runs: Runs) -> None:
    runs.world.error = RuntimeError("boom")
    with pytest.raises(RuntimeError):
        runs.run()
    cycle = Cycle.objects.get()
    assert (cycle.state, cycle.error[:33]) == (CycleState.FAILED, "deschedui failed (RuntimeError); ")


# --- dry runs ---------------------------------------------------------------------------------------------


def test_a_dry_run_leaves_no_decision(runs: Runs) -> None:
    cycle = runs.run(CycleKind.DRY_RUN)
    assert cycle.state == CycleState.COMPLETED
    assert not Decision.objects.exists()
    (line,) = lines(cycle)
    assert (line.state, line.why) == ("waiting", "would wait for a human")
    assert line.forecast is not None


def test_a_dry_run_says_whom_it_would_ask(runs: Runs) -> None:
    runs.policy(policy_text(extender=extender_args()))
    (line,) = lines(runs.run(CycleKind.DRY_RUN))
    assert (line.state, line.why) == ("would_ask", "would ask https://ext.example/evict")
    assert runs.extender.bodies == []


def test_a_dry_run_asks_where_the_cluster_lets_it(runs: Runs) -> None:
    Cluster.objects.update(overrides={"dry_run_asks_extenders": True})
    runs.extender.says = lambda _name: {"allow": False, "reason": "quorum"}
    runs.policy(policy_text(extender=extender_args()))
    (line,) = lines(runs.run(CycleKind.DRY_RUN))
    assert (line.state, line.why) == ("denied", "the extender denies it: quorum")
    assert not Decision.objects.exists()


def test_a_dry_run_shows_open_decisions_and_withdraws_none(runs: Runs) -> None:
    runs.run()
    row = Decision.objects.get()
    (line,) = lines(runs.run(CycleKind.DRY_RUN))
    assert (line.state, line.decision) == ("waiting", row.pk)
    runs.policy(policy_text(seconds=999_999))
    runs.run(CycleKind.DRY_RUN)
    row.refresh_from_db()
    assert (row.verdict, row.nominated_count) == (Verdict.PENDING, 1)


def test_a_dry_run_shows_a_freeze(runs: Runs) -> None:
    freezes.freeze(cluster=runs.cluster, by=Actor(name="root"), reason="incident 7", now=NOW)
    (line,) = lines(runs.run(CycleKind.DRY_RUN))
    assert "Frozen by root" in line.why


def test_a_dry_run_shows_a_cool_down(runs: Runs) -> None:
    runs.run()
    verdicts.deny(decision_id=Decision.objects.get().pk, version=1, by=approver(), reason="no", now=NOW)
    (line,) = lines(runs.run(CycleKind.DRY_RUN))
    assert "denied by ada: no" in line.why


def test_a_dry_run_finds_a_config_error_too(runs: Runs) -> None:
    runs.policy(policy_text(extender=extender_args(tlsConfig={"caCertFile": "/nowhere/ca.crt"})))
    assert runs.run(CycleKind.DRY_RUN).failure_mode == "config_error"


def test_a_cluster_that_is_not_armed_only_observes(runs: Runs) -> None:
    Cluster.objects.update(armed=False)
    cycle = runs.run(CycleKind.SCHEDULED)
    assert cycle.dry
    assert not Decision.objects.exists()


def test_who_started_it_is_kept(runs: Runs, ada: User) -> None:
    assert runs.run(by=Actor.person(ada)).started_by == ada
    assert runs.run(by=SYSTEM).started_by is None


def test_an_annotation_that_misleads_is_a_warning_of_the_cycle(runs: Runs) -> None:
    runs.world.pods = [old_pod(annotations={"descheduler.alpha.kubernetes.io/evict": "false"})]
    cycle = runs.run()
    assert any("shop/web-1" in warning and "evict" in warning for warning in cycle.warnings)


def test_the_policys_warnings_are_the_cycles_too_each_once(runs: Runs) -> None:
    text = policy_text(top="colour: red\n", extender=extender_args(ignorable=True))
    runs.policy(text)
    warnings = [warning for warning in runs.run().warnings if warning.startswith("Policy")]
    assert any(
        "ignorable is true: it means evict although nobody answered" in warning for warning in warnings
    )
    assert len(set(warnings)) == len(warnings)


def test_the_timeline_begins_with_the_question(runs: Runs) -> None:
    runs.policy(policy_text(extender=extender_args()))
    runs.run()
    kinds = Decision.objects.get().events.values_list("kind", flat=True)
    assert list(kinds) == [Event.ASKED, Event.EXTENDER_ANSWERED]
