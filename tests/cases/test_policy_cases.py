"""Cases that users of the descheduler ran into, about the policy file. Each test carries its case's id."""

import pytest

from deschedui.descheduler.plugins.external_decision_args import ExternalDecisionArgs
from deschedui.descheduler.policy import Limits, LoadResult, Policy, PriorityError, load
from deschedui.extender.config import FailPolicy

HEAD = "apiVersion: descheduler/v1alpha2\nkind: DeschedulerPolicy\n"
GATED = """profiles:
- name: a
  pluginConfig:
  - name: ExternalDecision
    args:
      extender: {{urlPrefix: 'https://ext.example', {}}}
  - name: PodLifeTime
    args: {{maxPodLifeTimeSeconds: 3600}}
  plugins:
    deschedule: {{enabled: [PodLifeTime]}}
    preevictionfilter: {{enabled: [ExternalDecision]}}
"""


def loaded(text: str) -> Policy:
    """The policy of a text that must load."""
    result = load(HEAD + text)
    assert result.policy is not None, result.errors
    return result.policy


def said(result: LoadResult) -> str:
    """Errors and warnings as a page lists them."""
    return "\n".join(map(str, (*result.errors, *result.warnings)))


def gate(policy: Policy) -> ExternalDecisionArgs:
    """The arguments of the first profile's gate."""
    args = policy.profiles[0].external_decision
    assert args is not None
    return args


PO_01 = """maxNoOfPodsToEvictPerCluster: 5
profiles:
- name: a
  pluginConfig:
  - name: DefaultEvictor
    nodeFit: true
  - name: PodLifeTime
    args: {maxPodLifeTimeSeconds: 3600}
  plugins:
    deschedule: {enabled: [PodLifeTime]}
"""


def test_po_01_misplaced_keys_are_ignored_and_said_so() -> None:
    result = load(HEAD + PO_01)
    assert "unknown key maxNoOfPodsToEvictPerCluster is ignored" in said(result)
    nodefit = next(warning for warning in result.warnings if warning.path.endswith("nodeFit"))
    assert (nodefit.path, nodefit.line) == ("profiles[0].pluginConfig[0].nodeFit", 8)
    assert nodefit.hint == "it belongs under args"


def test_po_01_what_was_misplaced_has_no_effect() -> None:
    policy = loaded(PO_01)
    assert policy.limits.total is None
    assert not policy.profiles[0].evictor.node_fit


def test_po_02_a_removed_argument_is_named_with_its_place_and_its_replacement() -> None:
    result = load(
        HEAD
        + "profiles:\n- name: a\n  pluginConfig:\n  - name: RemovePodsViolatingTopologySpreadConstraint\n"
        + "    args: {includeSoftConstraints: true}\n"
        + "  plugins:\n    balance: {enabled: [RemovePodsViolatingTopologySpreadConstraint]}\n"
    )
    assert result.policy is None
    assert "includeSoftConstraints" in said(result)
    assert "profiles[0].pluginConfig[0].args" in said(result)
    assert "use constraints: [DoNotSchedule, ScheduleAnyway]" in said(result)


def test_po_04_a_missing_entry_and_a_wrong_extension_point_are_reported_at_once() -> None:
    result = load(
        HEAD
        + "profiles:\n- name: a\n  pluginConfig:\n  - name: RemoveDuplicates\n  plugins:\n"
        + "    deschedule: {enabled: [RemoveDuplicates]}\n    balance: {enabled: [LowNodeUtilization]}\n"
    )
    assert "LowNodeUtilization is enabled but has no pluginConfig entry" in said(result)
    assert "RemoveDuplicates is a balance plugin, not deschedule" in said(result)
    assert result.upstream_error == (
        'failed to create new descheduler: unable to create "a" profile: profile "a" configures deschedule '
        "extension point of non-existing plugins: map[RemoveDuplicates:{}]"
    )


PO_06 = "profiles:\n- name: a\n  pluginConfig:\n  - name: DefaultEvictor\n    args:\n      priorityThreshold: {}\n"


def test_po_06_name_and_value_together_and_old_and_new_protections_are_both_refused() -> None:
    both = PO_06.format("{name: gold, value: 1000}")
    old = (
        "      evictLocalStoragePods: true\n      podProtections: {defaultDisabled: [PodsWithLocalStorage]}\n"
    )
    result = load(HEAD + both + old)
    assert [problem.message for problem in result.errors] == [
        "priority threshold misconfigured, only one of priorityThreshold fields can be set",
        "cannot use Deprecated fields alongside PodProtections.ExtraEnabled or PodProtections.DefaultDisabled",
    ]


def test_po_06_a_name_alone_is_resolved_and_loading_twice_is_no_error() -> None:
    text = HEAD + PO_06.format("{name: gold}")
    for _ in range(2):
        result = load(text, priority_classes={"gold": 1000})
        assert result.policy is not None
        assert result.policy.profiles[0].priority_threshold == 1000
        threshold = result.policy.profiles[0].evictor.priority_threshold
        assert threshold is not None
        assert (threshold.name, threshold.value) == ("gold", None)


def test_po_06_a_missing_priority_class_is_named() -> None:
    result = load(HEAD + PO_06.format("{name: gold}"), priority_classes={})
    assert 'priorityclasses.scheduling.k8s.io "gold" not found' in said(result)
    with pytest.raises(PriorityError, match="gold"):
        loaded(PO_06.format("{name: gold}")).bind({})


PO_07 = GATED.format("decisionVerb: evict, ignorable: false, httpTimeout: 5s, enableHTTPS: true").replace(
    "deschedule: {enabled: [PodLifeTime]}\n    preevictionfilter: {enabled: [ExternalDecision]}",
    "deschedule: {enabled: [PodLifeTime, ExternalDecision]}",
)


def test_po_07_a_file_with_external_decision_is_good_here_and_refused_upstream() -> None:
    result = load(HEAD + PO_07)
    assert result.policy is not None
    assert result.policy.profiles[0].deschedule == ("PodLifeTime", "ExternalDecision")
    assert result.upstream_error == "in profile a: plugin ExternalDecision in pluginConfig not registered"


def test_po_07_what_external_decision_does_under_deschedule_is_said() -> None:
    text = said(load(HEAD + PO_07))
    refused = (
        "the upstream descheduler refuses this file: plugin ExternalDecision in pluginConfig not registered"
    )
    assert refused in text
    assert "ExternalDecision under deschedule nominates every evictable pod" in text
    assert "to gate PodLifeTime enable it under preevictionfilter" in text


def test_po_09_the_limit_zero_is_a_limit_and_is_warned_about() -> None:
    text = HEAD + "maxNoOfPodsToEvictTotal: 0\nmaxNoOfPodsToEvictPerNode: 2\nprofiles: []\n"
    result = load(text)
    assert result.policy is not None
    assert result.policy.limits == Limits(total=0, per_node=2, per_namespace=None)
    assert "limit 0 blocks all evictions; remove the key for no limit" in said(result)


def test_po_09_a_negative_limit_is_refused() -> None:
    assert load(HEAD + "maxNoOfPodsToEvictTotal: -1\n").policy is None


@pytest.mark.parametrize(
    ("timeout", "seconds"), [("5s", 5), ("1m30s", 90), ("500ms", 0.5), ("1.5s", 1.5), ("1h", 3600)]
)
def test_ec_01_go_durations_are_read(timeout: str, seconds: float) -> None:
    policy = loaded(GATED.format(f"ignorable: false, httpTimeout: {timeout}"))
    assert gate(policy).asked[0].timeout_seconds == seconds


@pytest.mark.parametrize("timeout", ["0s", "'0'", "-5s", "''", "5", "5000000000", "'5'", "1d", "5 s", "1H"])
def test_ec_01_other_timeouts_are_refused_with_an_example(timeout: str) -> None:
    result = load(HEAD + GATED.format(f"ignorable: false, httpTimeout: {timeout}"))
    error = next(problem for problem in result.errors if problem.path.endswith("httpTimeout"))
    assert "httpTimeout" in error.message
    assert timeout.strip("'") in error.message
    assert "5s" in error.message


@pytest.mark.parametrize("given", ["", ", httpTimeout: null"])
def test_ec_01_a_timeout_is_required(given: str) -> None:
    assert "httpTimeout is required" in said(load(HEAD + GATED.format(f"ignorable: false{given}")))


@pytest.mark.parametrize("word", ["Deny", "Allow", "Ignore"])
def test_ec_04_a_fail_policy_is_read(word: str) -> None:
    policy = loaded(GATED.format(f"ignorable: false, httpTimeout: 5s, failPolicy: {word}"))
    assert gate(policy).asked[0].fail_policy == FailPolicy(word)


@pytest.mark.parametrize("given", ["", ", failPolicy: null"])
def test_ec_04_without_a_fail_policy_the_answer_is_no(given: str) -> None:
    policy = loaded(GATED.format(f"ignorable: false, httpTimeout: 5s{given}"))
    assert gate(policy).asked[0].fail_policy is FailPolicy.DENY


@pytest.mark.parametrize("word", ["deny", "ALLOW", "Permit", "''"])
@pytest.mark.parametrize("place", ["extender", "plugin"])
def test_ec_04_another_word_is_refused_and_opens_nothing(word: str, place: str) -> None:
    text = GATED.format(
        "ignorable: false, httpTimeout: 5s" + (f", failPolicy: {word}" if place == "extender" else "")
    )
    beside = text.replace("      extender:", f"      failPolicy: {word}\n      extender:")
    result = load(HEAD + (beside if place == "plugin" else text))
    assert result.policy is None
    assert any(problem.path.endswith("failPolicy") for problem in result.errors)


def test_ec_05_fail_policy_beside_ignorable_is_warned_about() -> None:
    text = HEAD + GATED.format("ignorable: true, httpTimeout: 1s, failPolicy: Deny")
    assert "failPolicy Deny then only counts for malformed answers" in said(load(text))
