"""Nothing is evicted that nobody allowed, and nothing twice."""

from tests.threats.defences.base import Defence, cut

_EVICTIONS = "decisions/services/evictions.py"
_CARRYOUT = "decisions/services/carryout.py"

DEFENCES: tuple[Defence, ...] = (
    Defence(
        "E1",
        "what was decided is in the claim",
        cut(
            _EVICTIONS,
            "        verdict=Verdict.ALLOWED,\n        eviction=Eviction.QUEUED,\n        executor=Executor.US,",
        ),
        "tests/domain/test_evictions.py::test_what_must_hold_is_in_the_claim",
    ),
    Defence(
        "E2",
        "a freeze is in the last query before the call",
        cut(
            _EVICTIONS,
            "        ~_frozen(),\n        decider_still_may(),\n        pk=decision_id,\n        attempt=attempt,",
            "        decider_still_may(),\n        pk=decision_id,\n        attempt=attempt,",
        ),
        "tests/domain/test_carryout.py::test_a_freeze_between_claim_and_call_holds_the_call",
    ),
    Defence(
        "E3",
        "one eviction for a pod's UID is a constraint",
        cut(
            "decisions/migrations/0001_initial.py",
            "fields=('cluster', 'pod_uid'), name='one_eviction_per_pod'",
            "fields=('cluster', 'pod_uid', 'asker'), name='one_eviction_per_pod'",
        ),
        "tests/domain/test_evictions.py::test_no_two_evictions_of_one_pod",
    ),
    Defence(
        "E4",
        "the UID is compared before the call",
        cut(_CARRYOUT, "    if pod.metadata.uid != row.pod_uid:", "    if False:"),
        "tests/domain/test_carryout.py::test_a_new_pod_of_the_old_name_is_not_evicted",
    ),
    Defence(
        "E5",
        "nothing is sent at the end of a lease",
        cut(_EVICTIONS, "        lease_until__gt=now + timedelta(seconds=call_seconds),\n", ""),
        "tests/domain/test_carryout.py::test_a_call_that_would_outlast_its_lease_is_not_sent",
    ),
    Defence(
        "E6",
        "a lost lease looks at the pod",
        cut(_EVICTIONS, "    elif look.terminating:", "    elif False:"),
        "tests/domain/test_races.py::test_killed_between_the_call_and_its_record",
    ),
    Defence(
        "E7",
        "the approval's moment is read again",
        cut(_CARRYOUT, "    if changes := moment.differences(row.moment, now):", "    if changes := {}:"),
        "tests/domain/test_carryout.py::test_fewer_ready_replicas_ask_again_and_say_the_difference",
    ),
    Defence(
        "E8",
        "the expiry is in the claim",
        cut(
            _EVICTIONS,
            '        executor=Executor.US,\n        expires_at__gt=now,\n        held="",',
            '        executor=Executor.US,\n        held="",',
        ),
        "tests/domain/test_evictions.py::test_what_must_hold_is_in_the_claim",
    ),
    Defence(
        "E9",
        "the tick finds what is queued by itself",
        cut(
            _CARRYOUT,
            "Decision.objects.filter(queued | lost, open=True)",
            "Decision.objects.filter(lost, open=True)",
        ),
        "tests/domain/test_races.py::test_what_was_committed_and_never_enqueued_is_found",
    ),
    Defence(
        "E10",
        "the owner's pace is in the claim",
        cut(_EVICTIONS, '        Q(owner_uid="") | ~Exists(_nth(same_owner, rules.per_owner)),\n', ""),
        "tests/domain/test_evictions.py::test_the_claim_itself_keeps_to_the_owners_pace",
    ),
    Defence(
        "E11",
        "a failure needs its own setting to do without a human",
        cut(
            "decisions/services/rules.py",
            '    return unattended == "failures" and outcome.failure_mode is not FailureMode.CIRCUIT_OPEN',
            '    return unattended != "off"',
        ),
        "tests/domain/test_verdicts.py::test_only_the_cluster_can_take_the_human_away",
    ),
)
