"""Policies: read, masked, stored when they changed; the last good one runs."""

import json
from pathlib import Path

import pytest

from decisions.models import AuditEntry, Cluster, PolicyVersion
from decisions.services import policies
from decisions.services.actors import Actor
from decisions.services.errors import Invalid
from tests.builders import NOW
from tests.domain.cycle_world import World, extender_args, policy_text

pytestmark = pytest.mark.django_db
ROOT = Actor(name="root")
BAD = "apiVersion: descheduler/v1alpha2\nkind: DeschedulerPolicy\nmaxNoOfPodsToEvictTotal: -1\nprofiles: []\n"
SECRET = "Bearer s3cret-s3cret"


@pytest.fixture
def file(cluster: Cluster, tmp_path: Path) -> Path:
    path = tmp_path / "policy.yaml"
    cluster.policy_file = str(path)
    cluster.save()
    return path


def prepare(cluster: Cluster) -> policies.Running:
    return policies.prepare(cluster=cluster, client=None, now=NOW)


def with_secret(headers: object) -> str:
    return policy_text(extender=extender_args(httpHeaders=headers))


def test_a_good_file_runs_and_is_stored_once(cluster: Cluster, file: Path) -> None:
    file.write_text(policy_text())
    assert prepare(cluster).version == prepare(cluster).version
    version = PolicyVersion.objects.get()
    assert (version.number, version.valid, version.source) == (1, True, f"file {file}")


def test_a_changed_file_is_a_new_version(cluster: Cluster, file: Path) -> None:
    file.write_text(policy_text())
    prepare(cluster)
    file.write_text(policy_text(seconds=10))
    assert prepare(cluster).version.number == 2
    assert [entry.what for entry in AuditEntry.objects.all()] == ["policy changed", "policy changed"]


def test_a_bad_file_is_stored_and_the_last_good_one_runs(cluster: Cluster, file: Path) -> None:
    file.write_text(policy_text())
    prepare(cluster)
    file.write_text(BAD)
    running = prepare(cluster)
    bad = policies.latest(cluster.pk)
    assert bad is not None
    assert (bad.number, bad.valid, running.version.number) == (2, False, 1)
    assert "Version 2 of the policy" in running.notes[0]
    assert bad.errors[0]["line"] == 3


def test_a_bad_file_that_was_mended_runs_again(cluster: Cluster, file: Path) -> None:
    for text in (policy_text(), BAD, policy_text()):
        file.write_text(text)
        running = prepare(cluster)
    assert (running.version.number, running.notes) == (3, ())


def test_a_missing_file_leaves_the_last_good_one_running(cluster: Cluster, file: Path) -> None:
    file.write_text(policy_text())
    prepare(cluster)
    file.unlink()
    running = prepare(cluster)
    assert running.version.number == 1
    assert "cannot be read: No such file or directory" in running.notes[0]


def test_nothing_good_ever_is_said_so(cluster: Cluster, file: Path) -> None:
    with pytest.raises(policies.NoPolicy, match="cannot be read"):
        prepare(cluster)


def test_a_file_that_is_no_policy_is_not_kept(cluster: Cluster, file: Path) -> None:
    file.write_text("users: [{user: {token: abc}}]")
    with pytest.raises(policies.NoPolicy, match="does not look like a DeschedulerPolicy"):
        prepare(cluster)
    assert not PolicyVersion.objects.exists()


@pytest.mark.parametrize(
    ("content", "why"), [(b"\xff\xfe", "not UTF-8"), (b"x" * 1_048_577, "larger than 1 MiB")]
)
def test_a_file_that_cannot_be_text_is_refused(
    cluster: Cluster, file: Path, content: bytes, why: str
) -> None:
    file.write_bytes(content)
    with pytest.raises(policies.NoPolicy, match=why):
        prepare(cluster)


def test_header_values_are_masked_and_their_lines_stay(cluster: Cluster, file: Path) -> None:
    file.write_text(with_secret({"Authorization": SECRET}))
    running = prepare(cluster)
    assert SECRET not in running.version.text
    assert "***" in running.version.text
    assert running.masked_headers == ()


def test_a_reference_to_a_secret_is_not_masked(cluster: Cluster, file: Path) -> None:
    file.write_text(with_secret({"Authorization": "Bearer ${env:TOKEN}"}))
    assert "Bearer ${env:TOKEN}" in prepare(cluster).version.text


@pytest.mark.parametrize(
    "text",
    [
        with_secret({"Authorization": SECRET}) + "profiles: [",
        with_secret({"Authorization": [SECRET]}),
        with_secret({"Authorization\n": SECRET}),
        with_secret({"Authorization": SECRET + "\u2028"}),
        f"kind: DeschedulerPolicy\nhttpHeaders:\n  Authorization: {SECRET}\n bad: [",
    ],
)
def test_a_bad_policy_shows_no_header_value_either(cluster: Cluster, file: Path, text: str) -> None:
    file.write_text(text)
    with pytest.raises(policies.NoPolicy) as nothing:
        prepare(cluster)
    stored = PolicyVersion.objects.values().get()
    assert "s3cret" not in str(stored) + str(nothing.value)


def test_the_last_good_one_after_a_restart_knows_which_headers_it_lost(cluster: Cluster, file: Path) -> None:
    file.write_text(with_secret({"Authorization": SECRET, "X-Team": "${env:TEAM}"}))
    prepare(cluster)
    file.write_text(BAD)
    assert prepare(cluster).masked_headers == ("profile default: Authorization",)


DOOR = "https://deschedui.example/doors/dui_s3cret"


def test_a_doors_token_in_a_url_is_masked_too(cluster: Cluster, file: Path) -> None:
    file.write_text(policy_text(extender=extender_args(urlPrefix=DOOR)))
    assert prepare(cluster).masked_headers == ()
    assert "dui_s3cret" not in str(PolicyVersion.objects.values().get())


def test_and_known_to_be_lost_after_a_restart(cluster: Cluster, file: Path) -> None:
    file.write_text(policy_text(extender=extender_args(urlPrefix=DOOR)))
    prepare(cluster)
    file.write_text(BAD)
    assert prepare(cluster).masked_headers == ("profile default: urlPrefix",)


def test_what_is_wrong_with_such_a_url_is_said_without_it(cluster: Cluster) -> None:
    checked = policies.validate(policy_text(extender=extender_args(urlPrefix=f"{DOOR}/x?y=1#z")))
    assert not checked.valid
    assert "dui_s3cret" not in str(checked.errors) + str(checked.warnings)


def test_a_persons_policy_may_have_none(cluster: Cluster) -> None:
    text = policy_text(extender=extender_args(urlPrefix=DOOR))
    with pytest.raises(Invalid, match="profile default: urlPrefix"):
        policies.save_text(cluster=cluster, text=text, by=ROOT, now=NOW)


def test_a_config_map_is_read_through_the_cluster(cluster: Cluster) -> None:
    cluster.policy_configmap = "kube-system/descheduler/policy.yaml"
    world = World(config_maps={("kube-system", "descheduler"): {"policy.yaml": policy_text()}})
    running = policies.prepare(cluster=cluster, client=world, now=NOW)
    assert running.version.source == "ConfigMap kube-system/descheduler/policy.yaml"


def test_a_config_map_without_the_key_says_what_it_has(cluster: Cluster) -> None:
    cluster.policy_configmap = "kube-system/descheduler/policy.yaml"
    world = World(config_maps={("kube-system", "descheduler"): {"policy.yml": ""}})
    with pytest.raises(policies.NoPolicy, match=r"has no key policy.yaml; it has: policy.yml"):
        policies.prepare(cluster=cluster, client=world, now=NOW)


def test_a_config_map_that_cannot_be_read_says_why(cluster: Cluster) -> None:
    cluster.policy_configmap = "kube-system/descheduler/policy.yaml"
    with pytest.raises(
        policies.NoPolicy, match=r"ConfigMap kube-system/descheduler cannot be read: .*not found"
    ):
        policies.prepare(cluster=cluster, client=World(), now=NOW)


def test_a_person_may_write_a_policy(cluster: Cluster) -> None:
    version = policies.save_text(cluster=cluster, text=policy_text(), by=ROOT, now=NOW)
    assert (version.valid, version.source) == (True, "written by root")
    assert prepare(cluster).version == version


def test_a_persons_bad_policy_is_stored_and_does_not_run(cluster: Cluster) -> None:
    good = policies.save_text(cluster=cluster, text=policy_text(), by=ROOT, now=NOW)
    assert not policies.save_text(cluster=cluster, text=BAD, by=ROOT, now=NOW).valid
    assert prepare(cluster).version == good


def test_a_persons_policy_may_have_no_literal_header(cluster: Cluster) -> None:
    with pytest.raises(Invalid, match=r"profile default: Authorization. Write \$\{env:NAME\}"):
        policies.save_text(cluster=cluster, text=with_secret({"Authorization": SECRET}), by=ROOT, now=NOW)


def test_a_policy_that_comes_from_a_file_is_changed_there(cluster: Cluster, file: Path) -> None:
    with pytest.raises(Invalid, match="change it there"):
        policies.save_text(cluster=cluster, text=policy_text(), by=ROOT, now=NOW)


def test_validating_stores_nothing(cluster: Cluster) -> None:
    checked = policies.validate(BAD)
    assert (checked.valid, len(checked.errors)) == (False, 1)
    assert not PolicyVersion.objects.exists()
    assert json.dumps(checked.errors)
