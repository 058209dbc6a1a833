"""ExternalDecision in a policy: who is asked, and that a gate is never off because of a slip of the pen."""

import pytest

from deschedui.descheduler.plugins.external_decision_args import Approval, ExternalDecisionArgs
from deschedui.descheduler.policy import LoadResult, load
from deschedui.extender.config import FailPolicy
from tests.engine.policy.builders import EXTENDER, POD_LIFE_TIME, gated, messages, policy_text, warnings


def args_of(result: LoadResult) -> ExternalDecisionArgs:
    """The gate's arguments of a policy that must load."""
    assert result.policy is not None, messages(result)
    args = result.policy.profiles[0].external_decision
    assert args is not None
    return args


def test_without_an_extender_a_human_is_asked() -> None:
    args = args_of(gated("{}"))
    assert args.asked == ()
    assert args.approval is Approval.REQUIRED


def test_one_extender_or_several_can_be_asked() -> None:
    assert args_of(gated(f"{{extender: {EXTENDER}}}")).asked[0].url == "https://ext.example/evict"
    assert len(args_of(gated(f"{{extenders: [{EXTENDER}, {EXTENDER}]}}")).asked) == 2


def test_both_extender_and_extenders_are_refused() -> None:
    assert "only one of extender/extenders can be set" in messages(
        gated(f"{{extender: {EXTENDER}, extenders: [{EXTENDER}]}}")
    )


def test_the_fail_policy_of_the_plugin_is_the_default_of_its_extenders() -> None:
    own = EXTENDER.replace("}", ", failPolicy: Allow}")
    args = args_of(gated(f"{{extenders: [{EXTENDER}, {own}], failPolicy: Ignore}}"))
    assert [extender.fail_policy for extender in args.asked] == [FailPolicy.IGNORE, FailPolicy.ALLOW]


def test_all_that_is_wrong_with_an_extender_is_named_with_its_place() -> None:
    result = gated("{extender: {urlPrefix: 'ftp://x', httpTimeout: 5, tlsConfg: {}}}")
    paths = {problem.path.rpartition("args.")[2] for problem in result.errors}
    assert paths == {"extender.urlPrefix", "extender.httpTimeout", "extender.tlsConfg", "extender.ignorable"}
    assert all(problem.line == 6 for problem in result.errors)


def test_unknown_arguments_are_refused_although_upstream_never_reads_them() -> None:
    result = gated("{aproval: NotRequired}")
    assert result.errors[0].hint == "did you mean approval?"
    assert result.errors[0].upstream == ""
    assert result.upstream_error == "in profile main: plugin ExternalDecision in pluginConfig not registered"


@pytest.mark.parametrize("word", ["required", "notRequired", "''", "5", "true"])
def test_approval_is_spelled_exactly(word: str) -> None:
    assert "approval must be Required or NotRequired in exactly this spelling" in messages(
        gated(f"{{approval: {word}}}")
    )


@pytest.mark.parametrize(
    "plugins",
    [
        "{deschedule: {enabled: [PodLifeTime]}}",
        "{deschedule: {enabled: [PodLifeTime]}, preEvictionFilter: {enabled: [ExternalDecision]}}",
        "{deschedule: {enabled: [PodLifeTime]}, preevictionfilter: {enable: [ExternalDecision]}}",
        "{deschedule: {enabled: [PodLifeTime]}, preevictionfilter: {disabled: [ExternalDecision]}}",
        "{deschedule: {enabled: [PodLifeTime]}, sort: {enabled: [ExternalDecision]}}",
        "{deschedule: {enabled: [PodLifeTime]}, balance: {enabled: [ExternalDecision]}}",
        "{deschedule: {enabled: [PodLifeTime]}, preevictionfilter: {enabled: [ExternalDecisions]}}",
    ],
)
def test_a_gate_that_is_configured_and_off_is_an_error(plugins: str) -> None:
    result = gated("{}", plugins=plugins)
    assert result.policy is None
    assert "ExternalDecision" in messages(result)


def test_a_misspelt_extension_point_gets_a_hint() -> None:
    plugins = "{deschedule: {enabled: [PodLifeTime]}, preEvictionFilter: {enabled: [ExternalDecision]}}"
    hints = {problem.hint for problem in gated("{}", plugins=plugins).errors}
    assert "did you mean preevictionfilter?" in hints


def test_a_gate_beside_a_misspelt_one_is_an_error_too() -> None:
    plugins = (
        "{deschedule: {enabled: [PodLifeTime]}, filter: {enabled: [ExternalDecision]},"
        " preEvictionFilter: {enabled: [ExternalDecision]}}"
    )
    assert "has no effect" in messages(gated("{}", plugins=plugins))


def test_a_gate_in_a_misspelt_part_of_the_policy_is_an_error() -> None:
    text = policy_text(entries=("{name: ExternalDecision}", POD_LIFE_TIME))
    assert "ExternalDecision is named here and has no effect" in messages(
        load(text.replace("pluginConfig", "pluginConfigs"))
    )
    assert "ExternalDecision is named here and has no effect" in messages(
        load(text.replace("profiles", "profile"))
    )


def test_a_profile_may_be_called_external_decision() -> None:
    assert load(policy_text(name="ExternalDecision")).errors == ()


def test_a_gate_without_an_entry_is_refused() -> None:
    result = load(
        policy_text(plugins="{deschedule: {enabled: [PodLifeTime]}, filter: {enabled: [ExternalDecision]}}")
    )
    assert "ExternalDecision is enabled but has no pluginConfig entry" in messages(result)
    text = "configures filter extension point of non-existing plugins: map[ExternalDecision:{}]"
    assert text in str(result.upstream_error)


@pytest.mark.parametrize("point", ["deschedule", "filter", "preevictionfilter"])
def test_it_may_stand_at_three_extension_points(point: str) -> None:
    result = gated("{}", plugins=f"{{{point}: {{enabled: [ExternalDecision]}}}}")
    assert args_of(result) == ExternalDecisionArgs()


@pytest.mark.parametrize(
    ("args", "warning"),
    [
        ("{failPolicy: Allow}", "failPolicy has no effect: there is no extender"),
        ("{approval: NotRequired}", "approval: NotRequired has no effect: there is no extender"),
        (f"{{extender: {EXTENDER.replace('false', 'true')}}}", "it means evict although nobody answered"),
        (
            f"{{failPolicy: Allow, extenders: [{EXTENDER.replace('false', 'true')}]}}",
            "failPolicy Allow then only counts for malformed answers",
        ),
    ],
)
def test_what_is_easily_misread_is_warned_about(args: str, warning: str) -> None:
    assert warning in warnings(gated(args))


def test_a_secret_in_the_policy_is_warned_about_and_never_repeated() -> None:
    headers = ", httpHeaders: {Authorization: Bearer hunter2}}"
    result = gated(f"{{extender: {EXTENDER.replace('}', headers)}}}")
    assert "of which only a masked copy is stored" in warnings(result)
    assert "hunter2" not in warnings(result) + messages(result)


def test_a_reference_in_a_header_needs_no_warning() -> None:
    headers = ", httpHeaders: {Authorization: 'Bearer ${env:TOKEN}'}}"
    assert "masked copy" not in warnings(gated(f"{{extender: {EXTENDER.replace('}', headers)}}}"))
