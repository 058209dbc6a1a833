"""The accounts of ``deploy/`` have exactly the rights of a checked-in list, each with a reason and the code for it."""

from __future__ import annotations

from collections import Counter
from importlib import import_module
from typing import Any

import yaml

from tests.real.rights import DEPLOY, Right, granted, listed


def manifests() -> list[dict[str, Any]]:
    files = [file for file in sorted((DEPLOY / "base").glob("*.yaml")) if file.name != "kustomization.yaml"]
    texts = [file.read_text(encoding="utf-8") for file in files]
    return [document for text in texts for document in yaml.safe_load_all(text)]


def test_the_roles_give_exactly_what_the_list_says() -> None:
    given = granted(manifests())
    assert set(given) - set(listed()) == set(), "given, and not in deploy/rights.yaml"
    assert set(listed()) - set(given) == set(), "in deploy/rights.yaml, and not given"
    assert [right for right, times in Counter(given).items() if times > 1] == [], "given twice"


def test_every_right_says_why_and_names_the_code_that_uses_it() -> None:
    for right, entry in listed().items():
        module, _, place = entry["code"].rpartition(".ClusterClient.")
        assert entry["why"], right
        assert callable(getattr(import_module(module).ClusterClient, place)), right


def test_the_list_names_every_account_that_pods_run_as() -> None:
    accounts = {each["metadata"]["name"] for each in manifests() if each["kind"] == "ServiceAccount"}
    assert accounts == set(yaml.safe_load((DEPLOY / "rights.yaml").read_text(encoding="utf-8")))


def test_nobody_may_watch_delete_patch_read_secrets_or_use_wildcards() -> None:
    given = granted(manifests())
    assert {right.verb for right in given} == {"get", "list", "create", "update"}
    assert not [right for right in given if "*" in "".join(right) or right.resource == "secrets"]


def test_only_the_worker_changes_anything_and_outside_its_namespace_only_evictions_and_events() -> None:
    changing = {right for right in granted(manifests()) if right.verb not in {"get", "list"}}
    assert {right.account for right in changing} == {"deschedui-worker"}
    everywhere = {right.resource for right in changing if not right.namespace}
    assert everywhere == {"pods/eviction", "events"}


def test_a_role_beyond_the_list_is_found() -> None:
    extra = Right("deschedui-web", "get", "", "secrets")
    role = {"kind": "ClusterRole", "metadata": {"name": "x"}, "rules": [rule("", "secrets", "get")]}
    binding = {
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "x"},
        "roleRef": {"kind": "ClusterRole", "name": "x"},
        "subjects": [{"kind": "ServiceAccount", "namespace": "deschedui", "name": "deschedui-web"}],
    }
    assert set(granted([*manifests(), role, binding])) - set(listed()) == {extra}


def rule(group: str, resource: str, verb: str) -> dict[str, list[str]]:
    return {"apiGroups": [group], "resources": [resource], "verbs": [verb]}
