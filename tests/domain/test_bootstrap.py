"""The first start, and the command line."""

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command

from decisions.models import AuditEntry, Cluster, Freeze, PolicyVersion, Role, RoleBinding
from decisions.queries.access import Access
from decisions.services.bootstrap import bootstrap, next_steps
from decisions.services.errors import Invalid
from deschedui.config import Environment
from tests.builders import NOW, make_cluster
from tests.domain.cycle_world import policy_text

pytestmark = pytest.mark.django_db


def environment(**values: Any) -> Environment:
    return Environment(**{"secret_key": "x", "cluster_name": "prod", **values})


def run(*words: str) -> str:
    out = StringIO()
    call_command(*words, stdout=out)
    return out.getvalue()


def test_the_first_start_makes_the_cluster_and_reads_its_policy(tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(policy_text())
    done = bootstrap(env=environment(policy_file=str(path), cluster_context="kind"), now=NOW)
    cluster = Cluster.objects.get()
    assert (cluster.name, cluster.context, cluster.armed) == ("prod", "kind", False)
    assert PolicyVersion.objects.get().valid
    assert done == [
        "Added cluster prod. It only observes until an admin arms it.",
        f"Read policy {path}: valid.",
    ]


def test_the_second_start_changes_nothing() -> None:
    bootstrap(env=environment(), now=NOW)
    Cluster.objects.update(context="edited", armed=True)
    assert bootstrap(env=environment(cluster_context="kind"), now=NOW) == []
    assert Cluster.objects.get().context == "edited"


def test_without_a_name_no_cluster_is_made() -> None:
    assert bootstrap(env=environment(cluster_name=""), now=NOW) == []
    assert not Cluster.objects.exists()


def test_a_policy_file_that_is_missing_does_not_stop_the_start() -> None:
    done = bootstrap(env=environment(policy_file="/nowhere/policy.yaml"), now=NOW)
    assert "cannot be read" in done[1]


def test_a_value_that_cannot_be_used_names_its_variable() -> None:
    with pytest.raises(
        Invalid, match="DESCHEDUI_POLICY_CONFIGMAP: Write the ConfigMap as namespace/name/key"
    ):
        bootstrap(env=environment(policy_configmap="descheduler"), now=NOW)


def test_superusers_are_admins_as_long_as_nobody_has_a_role() -> None:
    user = User.objects.create_superuser("root", password="correct horse battery")
    assert bootstrap(env=environment(cluster_name=""), now=NOW) == ["root is admin of all clusters."]
    assert Access.of(user).may("configure", None)


def test_a_superuser_who_comes_later_gets_no_role_by_itself(viewer: User) -> None:
    User.objects.create_superuser("root", password="correct horse battery")
    bootstrap(env=environment(cluster_name=""), now=NOW)
    assert RoleBinding.objects.count() == 1


def test_the_command_says_when_there_is_nothing_to_do() -> None:
    assert "There is no cluster yet" in run("bootstrap")


# --- freeze -----------------------------------------------------------------------------------------------


def test_a_freeze_from_the_command_line_holds_and_is_audited(cluster: Cluster) -> None:
    said = run("freeze", "prod", "--reason", "incident 7")
    freeze = Freeze.objects.get()
    assert (freeze.cluster, freeze.reason) == (cluster, "incident 7")
    assert "(command line)" in freeze.set_by
    assert "0 eviction calls were already in flight" in said
    assert AuditEntry.objects.get().what == "frozen"


def test_a_freeze_without_a_name_is_of_everything(cluster: Cluster) -> None:
    run("freeze", "--reason", "incident 7")
    assert Freeze.objects.get().cluster is None


def test_a_freeze_is_lifted(cluster: Cluster) -> None:
    run("freeze", "prod", "--reason", "incident 7")
    assert "Cluster prod: the freeze was lifted." in run("freeze", "prod", "--lift")
    assert Freeze.objects.get().lifted_at is not None


def test_lifting_one_says_that_another_still_holds(cluster: Cluster) -> None:
    run("freeze", "prod", "--reason", "ours")
    run("freeze", "--reason", "everybody's")
    assert "still held by the freeze of all clusters: everybody's" in run("freeze", "prod", "--lift")


def test_lifting_what_is_not_frozen_says_so(cluster: Cluster) -> None:
    assert "there is no freeze to lift" in run("freeze", "prod", "--lift")


def test_a_freeze_needs_a_reason(cluster: Cluster) -> None:
    with pytest.raises(CommandError, match="Say why"):
        run("freeze", "prod", "--reason", " ")


def test_an_unknown_cluster_is_named_with_those_there_are(cluster: Cluster) -> None:
    with pytest.raises(CommandError, match="There is no cluster staging; there are: prod"):
        run("freeze", "staging", "--reason", "x")


# --- the others -------------------------------------------------------------------------------------------


def test_the_environment_is_listed_with_its_defaults() -> None:
    listed = json.loads(run("environment", "--format", "json"))
    assert {"name": "DESCHEDUI_DEBUG", "default": "false"}.items() <= listed[1].items()
    assert len(listed) == len(Environment.model_fields)


def test_the_environments_values_are_not_shown() -> None:
    assert "for-tests-only" not in run("environment") + run("environment", "--format", "markdown")


def test_a_role_is_given_from_the_command_line(stranger: User) -> None:
    make_cluster()
    run("grant", "stan", "approver", "--cluster", "prod", "--namespace", "shop")
    binding = RoleBinding.objects.get()
    assert (binding.role, binding.namespaces) == (Role.APPROVER, ["shop"])


def test_a_role_for_nobody_is_refused() -> None:
    with pytest.raises(CommandError, match="There is no user stan"):
        run("grant", "stan", "admin")


def test_an_empty_installation_says_what_to_do_next(db: None) -> None:
    steps = " ".join(next_steps())
    assert "DESCHEDUI_CLUSTER_NAME" in steps
    assert "manage.py grant" in steps


def test_a_finished_installation_says_nothing(cluster: Cluster, admin: User) -> None:
    assert next_steps() == []
