"""Loading a policy: what becomes of a good one, and everything that is said about a bad one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deschedui.descheduler.plugins.default_evictor_args import DefaultEvictorArgs
from deschedui.descheduler.plugins.pod_life_time_args import PodLifeTimeArgs
from deschedui.descheduler.policy import Limits, Policy, PriorityError, load
from tests.engine.policy.builders import HEAD, POD_LIFE_TIME, messages, policy_text, warnings, with_args

DECODING = 'failed decoding descheduler\'s policy config "policy.yaml": '
BUILDING = 'failed to create new descheduler: unable to create "main" profile: '


def good(text: str) -> Policy:
    """The policy of a text that must load."""
    result = load(text)
    assert result.policy is not None, messages(result)
    return result.policy


def test_a_policy_loads_with_its_defaults_filled_in() -> None:
    profile = good(policy_text()).profiles[0]
    assert (profile.name, profile.index, profile.deschedule) == ("main", 0, ("PodLifeTime",))
    assert profile.filter == profile.preevictionfilter == ("DefaultEvictor",)
    assert profile.args["PodLifeTime"] == PodLifeTimeArgs(max_pod_life_time_seconds=3600)
    assert profile.evictor == DefaultEvictorArgs()
    assert profile.priority_threshold == 2_000_000_000
    assert profile.external_decision is None


def test_no_limits_and_the_limit_zero_are_different() -> None:
    assert good(policy_text()).limits == Limits(None, None, None)
    assert good(policy_text(top="maxNoOfPodsToEvictTotal: 0\n")).limits == Limits(total=0)


def test_node_selector_and_grace_period_are_kept() -> None:
    policy = good(policy_text(top="nodeSelector: pool in (a, b)\ngracePeriodSeconds: 30\n"))
    assert policy.node_selector is not None
    assert policy.node_selector.matches({"pool": "a"})
    assert policy.grace_period_seconds == 30


def test_a_json_text_loads_as_well() -> None:
    profiles = (
        '[{"name": "j", "pluginConfig": [{"name": "PodLifeTime", "args": {"states": ["Running"]}}],'
        ' "plugins": {"deschedule": {"enabled": ["PodLifeTime"]}}}]'
    )
    policy = good(f'{{"apiVersion": "descheduler/v1alpha2", "profiles": {profiles}}}')
    assert policy.profiles[0].name == "j"


@pytest.mark.parametrize("text", ["", "# only a comment\n", "---\n", "{}", "null"])
def test_an_empty_text_is_an_empty_policy(text: str) -> None:
    result = load(text)
    assert result.policy == Policy()
    assert "no profiles: nothing is nominated" in warnings(result)


def test_of_two_entries_for_a_plugin_the_first_counts_and_both_are_judged() -> None:
    second = "{name: PodLifeTime, args: {maxPodLifeTimeSeconds: 1, states: [Runing]}}"
    result = load(policy_text(entries=(POD_LIFE_TIME, second)))
    assert result.errors[0].path == "profiles[0].pluginConfig[1].args.states"
    assert "has an entry above, which counts" in warnings(result)


def test_every_error_is_reported_at_once_with_line_and_path() -> None:
    result = load(
        policy_text(
            top="maxNoOfPodsToEvictTotal: many\nnodeSelector: a b\n",
            entries=("{name: PodLifeTime, args: {maxPodLifetimeSeconds: 1}}", "{name: PodLiveTime}"),
            plugins="{deschedule: {enabled: [DefaultEvictor]}}",
        )
    )
    assert [(problem.line, problem.path) for problem in result.errors] == [
        (3, "maxNoOfPodsToEvictTotal"),
        (4, "nodeSelector"),
        (8, "profiles[0].pluginConfig[0].args.maxPodLifetimeSeconds"),
        (9, "profiles[0].pluginConfig[1].name"),
        (10, "profiles[0].plugins.deschedule.enabled[0]"),
    ]


def test_a_misspelling_gets_a_hint() -> None:
    result = with_args("{maxPodLifetimeSeconds: 1}")
    assert result.errors[0].hint == "did you mean maxPodLifeTimeSeconds?"
    upstream = 'strict decoding error: unknown field "maxPodLifetimeSeconds"'
    assert result.errors[0].upstream == DECODING + upstream


def test_a_bad_state_is_named_with_what_was_probably_meant() -> None:
    assert with_args("{states: [Runing]}").errors[0].hint == '"Runing" is none of them, did you mean Running?'


def test_unknown_arguments_come_in_one_upstream_text_sorted() -> None:
    result = with_args("{maxPodLifeTimeSeconds: 1, foo: 1, bar: 2, namespaces: {Include: [a]}}")
    text = 'unknown field "bar", unknown field "foo", unknown field "namespaces.Include"'
    assert result.upstream_error == f"{DECODING}strict decoding error: {text}"
    assert len(result.errors) == 3


def test_a_type_error_hides_strict_errors_from_upstream_and_not_from_us() -> None:
    result = with_args("{foo: 1, maxPodLifeTimeSeconds: text}")
    text = "json: cannot unmarshal string into Go struct field PodLifeTimeArgs.maxPodLifeTimeSeconds of type uint"
    assert result.upstream_error == DECODING + text
    assert len(result.errors) == 2


@pytest.mark.parametrize(
    ("top", "upstream"),
    [
        ("maxNoOfPodsToEvictPerNode: five", "string into Go struct field DeschedulerPolicy.{} of type uint"),
        ("maxNoOfPodsToEvictPerNode: -1", "number -1 into Go struct field DeschedulerPolicy.{} of type uint"),
        (
            "maxNoOfPodsToEvictPerNode: 5.5",
            "number 5.5 into Go struct field DeschedulerPolicy.{} of type uint",
        ),
        ("maxNoOfPodsToEvictPerNode: yes", "bool into Go struct field DeschedulerPolicy.{} of type uint"),
    ],
)
def test_a_wrong_type_is_told_in_gos_words_too(top: str, upstream: str) -> None:
    result = load(policy_text(top=f"{top}\n"))
    expected = f"json: cannot unmarshal {upstream.format('maxNoOfPodsToEvictPerNode')}"
    assert result.upstream_error == DECODING + expected
    assert "must be a whole number from 0 up" in messages(result)


def test_a_word_that_yaml_reads_as_a_boolean_is_explained() -> None:
    result = with_args("{maxPodLifeTimeSeconds: 1, namespaces: {exclude: [on]}}")
    assert result.errors[0].hint == 'YAML reads on as true: write "on" in quotes'
    assert "bool into Go struct field Namespaces.namespaces.exclude of type string" in str(
        result.upstream_error
    )


@pytest.mark.parametrize(
    ("age", "upstream"),
    [
        ("'5'", 'time: missing unit in duration "5"'),
        ("''", 'time: invalid duration ""'),
        ("1d", 'time: unknown unit "d" in duration "1d"'),
        (
            "5",
            "json: cannot unmarshal number into Go struct field DefaultEvictorArgs.minPodAge of type string",
        ),
    ],
)
def test_a_bad_minimum_age_is_refused(age: str, upstream: str) -> None:
    assert with_args(f"{{minPodAge: {age}}}", plugin="DefaultEvictor").upstream_error == DECODING + upstream


def test_a_negative_minimum_age_is_accepted() -> None:
    assert with_args("{minPodAge: -5m}", plugin="DefaultEvictor").policy is not None


@pytest.mark.parametrize(
    ("args", "upstream"),
    [
        ("{}", "at least one filtering criterion must be specified"),
        (
            "{maxPodLifeTimeSeconds: 1, namespaces: {include: [a], exclude: [b]}}",
            "only one of Include/Exclude namesp",
        ),
        (
            "{maxPodLifeTimeSeconds: 1, ownerKinds: {include: [a], exclude: [b]}}",
            "only one of Include/Exclude ownerK",
        ),
        ("{conditions: [{type: Ready}, {}]}", "conditions[1]: at least one of type, status, reason, or min"),
        (
            "{maxPodLifeTimeSeconds: 1, labelSelector: {matchExpressions: [{key: a, operator: X}]}}",
            "failed to get lab",
        ),
    ],
)
def test_bad_arguments_are_refused_in_upstream_words(args: str, upstream: str) -> None:
    assert str(with_args(args).upstream_error).startswith(f"in profile main: {upstream}")


def test_several_validation_errors_are_aggregated_like_upstream() -> None:
    args = "{namespaces: {include: [a], exclude: [b]}, states: [x]}"
    error = str(with_args(args).upstream_error)
    assert error.startswith(
        "in profile main: [only one of Include/Exclude namespaces can be set, states must be one"
    )


def test_zero_seconds_and_empty_included_taints_are_not_absent() -> None:
    assert with_args("{maxPodLifeTimeSeconds: 0}").policy is not None
    taints = "{name: RemovePodsViolatingNodeTaints, args: {includedTaints: []}}"
    enabled = "{deschedule: {enabled: [RemovePodsViolatingNodeTaints]}}"
    result = load(policy_text(entries=(taints,), plugins=enabled))
    assert "empty list: no taint counts and nothing is nominated" in warnings(result)


@pytest.mark.parametrize("args", ["[]", "5", "text", "{kind: 5}"])
def test_arguments_that_are_no_mapping_are_refused(args: str) -> None:
    head = DECODING + "couldn't get version/kind; json parse error: json: cannot unmarshal "
    assert str(with_args(args).upstream_error).startswith(head)


def test_arguments_may_carry_a_version_and_a_kind() -> None:
    args = "{apiVersion: descheduler/v1alpha2, kind: PodLifeTimeArgs, maxPodLifeTimeSeconds: 1}"
    assert with_args(args).policy is not None


def test_null_values_leave_the_defaults() -> None:
    text = HEAD + "profiles:\n- null\nnodeSelector: null\n"
    assert good(text).profiles[0].name == ""


@pytest.mark.parametrize(
    ("head", "upstream"),
    [
        (
            "apiVersion: descheduler/v1alpha1\n",
            'no kind "DeschedulerPolicy" is registered for version "descheduler/v1a',
        ),
        (
            "apiVersion: descheduler/v1alpha2\nkind: Foo\n",
            'no kind "Foo" is registered for version "descheduler/v1a',
        ),
        (
            "apiVersion: 5\n",
            "couldn't get version/kind; json parse error: json: cannot unmarshal number into Go struct",
        ),
    ],
)
def test_other_documents_are_refused(head: str, upstream: str) -> None:
    assert str(load(policy_text(head=head)).upstream_error).startswith(DECODING + upstream)


def test_without_an_api_version_the_policy_is_empty_and_that_is_said() -> None:
    result = load(policy_text(head="kind: DeschedulerPolicy\n"))
    assert result.policy == Policy()
    assert result.upstream_error is None
    assert "apiVersion is missing, so the descheduler reads this as an empty policy" in warnings(result)


def test_without_an_api_version_arguments_cannot_be_read() -> None:
    result = load("Profiles:\n- Name: a\n  PluginConfigs:\n  - Name: PodLifeTime\n    Args: {}\n")
    text = "Go struct field PluginConfig.Profiles.PluginConfigs.Args of type runtime.Object"
    assert result.upstream_error == f"{DECODING}json: cannot unmarshal object into {text}"


@pytest.mark.parametrize("text", ["- a\n", "just text", "5"])
def test_a_document_that_is_no_mapping_is_refused(text: str) -> None:
    assert "couldn't get version/kind; json parse error: json: cannot unmarshal" in str(
        load(text).upstream_error
    )


def test_several_profiles_with_errors_are_all_named() -> None:
    bad = "- name: {}\n  pluginConfig: [{{name: PodLifeTime}}]\n  plugins: {{deschedule: {{enabled: [PodLifeTime]}}}}\n"
    result = load(f"{HEAD}profiles:\n{bad.format('a')}{bad.format('b')}")
    paths = [problem.path for problem in result.errors]
    assert paths == ["profiles[0].pluginConfig[0].args", "profiles[1].pluginConfig[0].args"]
    assert str(result.upstream_error).startswith("[in profile a: at least one filtering criterion")


def test_an_enabled_plugin_without_an_entry_is_refused() -> None:
    result = load(policy_text(entries=("{name: DefaultEvictor}",)))
    text = 'unable to build PodLifeTime plugin: unable to find "PodLifeTime" plugin config'
    assert result.upstream_error == BUILDING + text
    assert result.upstream_stage == "build"


def test_plugins_at_wrong_places_are_listed_as_upstream_lists_them() -> None:
    result = load(policy_text(plugins="{preevictionfilter: {enabled: [PodLifeTime, Abc]}}"))
    text = "configures preEvictionFilter extension point of non-existing plugins: map[Abc:{} PodLifeTime:{}]"
    assert result.upstream_error == f'{BUILDING}profile "main" {text}'
    assert len(result.errors) == 2


def test_a_bad_evictor_selector_is_found_when_the_plugin_is_built() -> None:
    args = "{namespaceLabelSelector: {matchExpressions: [{key: a, operator: Near}]}}"
    text = 'unable to build DefaultEvictor plugin: unable to initialize "DefaultEvictor" plugin: '
    detail = 'unable to convert namespaceLabelSelector to label selector: "Near" is not a valid label selector operator'
    assert with_args(args, plugin="DefaultEvictor").upstream_error == BUILDING + text + detail


def test_a_plugin_still_to_come_is_refused_and_its_mistakes_are_named() -> None:
    entry = "{name: RemoveFailedPods, args: {minPodLifeTimeSeconds: 1}}"
    result = load(policy_text(entries=(entry,), plugins="{deschedule: {enabled: [RemoveFailedPods]}}"))
    assert result.policy is None
    assert "RemoveFailedPods is not supported yet" in messages(result)
    assert "RemoveFailedPods has no argument minPodLifeTimeSeconds" in messages(result)


def test_a_good_plugin_still_to_come_has_no_upstream_text() -> None:
    plugins = "{deschedule: {enabled: [RemoveFailedPods]}}"
    result = load(policy_text(entries=("{name: RemoveFailedPods}",), plugins=plugins))
    assert (len(result.errors), result.upstream_error) == (1, None)


def test_a_named_threshold_waits_for_the_cluster() -> None:
    entry = "{name: DefaultEvictor, args: {priorityThreshold: {name: gold}}}"
    policy = good(policy_text(entries=(entry, POD_LIFE_TIME)))
    assert policy.profiles[0].priority_threshold is None
    assert policy.bind({"gold": 1000}).profiles[0].priority_threshold == 1000


def test_a_priority_class_that_is_missing_or_too_high_is_refused() -> None:
    entry = "{name: DefaultEvictor, args: {priorityThreshold: {name: gold}}}"
    policy = good(policy_text(entries=(entry, POD_LIFE_TIME)))
    with pytest.raises(PriorityError, match=r'priorityclasses\.scheduling\.k8s\.io "gold" not found'):
        policy.bind({})
    with pytest.raises(PriorityError, match="can't be greater than 2000000000"):
        policy.bind({"gold": 2_000_000_001})


def test_a_threshold_that_is_too_high_is_refused_at_once() -> None:
    result = with_args("{priorityThreshold: {value: 2000000001}}", plugin="DefaultEvictor")
    assert result.upstream_error == "priority threshold can't be greater than 2000000000"


@pytest.mark.parametrize(
    ("text", "warning"),
    [
        (
            policy_text(plugins="{sort: {enabled: [Any]}, deschedule: {enabled: [PodLifeTime]}}"),
            "sort has no effect",
        ),
        (
            policy_text(plugins="{deschedule: {enabled: [PodLifeTime], disabled: [X]}}"),
            "disabled has no effect",
        ),
        (policy_text(plugins="{deschedule: {enabled: [PodLifeTime, PodLifeTime]}}"), "is enabled 2 times"),
        (policy_text(plugins="{}"), "PodLifeTime is configured and not enabled"),
        (policy_text(plugins="{}"), "it nominates nothing"),
        (
            policy_text(top="maxNoOfPodsToEvictTotal: 1\nmaxNoOfPodsToEvictTotal: 2\n"),
            "what stands in line 3 is ignored",
        ),
        (policy_text() + "---\na: b\n", "only the first document"),
        (
            policy_text(top="metricsProviders: [{source: KubernetesMetrics}]\n"),
            "metricsProviders has no effect",
        ),
        (policy_text(top="strategies: {}\n"), "that was v1alpha1"),
        (policy_text(top="Profiles: []\n"), "did you mean profiles?"),
    ],
)
def test_what_upstream_ignores_silently_is_a_warning(text: str, warning: str) -> None:
    result = load(text)
    assert warning in warnings(result)
    assert result.policy is not None
    assert result.upstream_error is None


@pytest.mark.parametrize(
    ("args", "warning"),
    [
        ("{minReplicas: 1}", "minReplicas: 1 protects nothing"),
        ("{evictSystemCriticalPods: true, priorityThreshold: {value: 5}}", "priorityThreshold has no effect"),
        ("{nodeFit: true, nodeSelector: a in b}", "no pod can be evicted"),
    ],
)
def test_evictor_arguments_that_do_not_do_what_they_seem_to_are_warned_about(args: str, warning: str) -> None:
    assert warning in warnings(with_args(args, plugin="DefaultEvictor"))


@pytest.mark.parametrize(
    ("providers", "upstream"),
    [
        (
            "[{source: A}, {source: A}]",
            'metric provider "A" is already configured, each source can be configured only',
        ),
        ("[{source: Prometheus}]", "prometheus configuration is required when prometheus source is enabled"),
        ("[{source: Prometheus, prometheus: {}}]", "prometheus URL is required when prometheus is enabled"),
        (
            "[{source: Prometheus, prometheus: {url: 'http://a:b c'}}]",
            'error parsing prometheus URL: parse "http://a:b c": invalid port ":b c" after host',
        ),
        (
            "[{source: Prometheus, prometheus: {url: 'http://a', authToken: {}}}]",
            "prometheus authToken secret is expected to be set when authToken field is",
        ),
    ],
)
def test_metrics_providers_are_judged_as_upstream_judges_them(providers: str, upstream: str) -> None:
    assert str(load(policy_text(top=f"metricsProviders: {providers}\n")).upstream_error).startswith(upstream)


def test_decoding_errors_hide_validation_errors_and_those_hide_building_errors() -> None:
    build = policy_text(plugins="{balance: {enabled: [PodLifeTime]}}")
    validation = build.replace("maxPodLifeTimeSeconds: 3600", "states: [x]")
    decoding = validation.replace("name: main", "name: 5")
    assert "non-existing plugins" in str(load(build).upstream_error)
    assert "states must be one of" in str(load(validation).upstream_error)
    assert "DeschedulerProfile.profiles.name of type string" in str(load(decoding).upstream_error)


def test_a_thousand_errors_are_listed_up_to_a_bound() -> None:
    result = load(policy_text(entries=tuple(f"{{name: P{i}}}" for i in range(1000))))
    assert len(result.errors) == 201
    assert "801 more" in result.errors[-1].message


def test_a_text_of_more_than_a_mebibyte_is_refused() -> None:
    result = load("# " + "x" * 1024 * 1024)
    assert result.policy is None
    assert "longer than" in messages(result)


@given(st.text(max_size=200), st.integers(0, 200))
def test_no_text_makes_loading_fail(junk: str, at: int) -> None:
    text = policy_text(top="maxNoOfPodsToEvictTotal: 1\n")
    result = load(text[:at] + junk + text[at:])
    assert (result.policy is None) == bool(result.errors)
