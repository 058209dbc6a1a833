"""The rights of ``deploy/base`` are exactly the calls of the client: none missing, none to spare."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from deschedui.kube.client import ClusterClient
from deschedui.kube.events import EventRequest
from deschedui.kube.eviction import EvictionRequest
from deschedui.kube.leases import LeaseClaim
from deschedui.kube.owners import OWNER_KINDS
from tests.kube.conftest import Connect
from tests.kube.server import Answer, Request, serving

BASE = Path(__file__).resolve().parents[2] / "deploy" / "base"
Right = tuple[str, str, str]

_PATH = re.compile(
    r"/(?:api/v1|apis/(?P<group>[^/]+)/v1)(?:/namespaces/[^/]+(?=/))?/(?P<plural>[a-z]+)"
    r"(?:/(?P<name>[^/]+))?(?:/(?P<sub>[a-z]+))?"
)


def rights_of(role: str) -> set[Right]:
    documents = yaml.safe_load_all((BASE / "rbac.yaml").read_text(encoding="utf-8"))
    rules = [
        rule
        for document in documents
        if document["kind"] in {"ClusterRole", "Role"} and document["metadata"]["name"] == role
        for rule in document["rules"]
    ]
    return {
        (verb, group, resource)
        for rule in rules
        for verb in rule["verbs"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }


def used(request: Request) -> Right:
    found = _PATH.fullmatch(request.path)
    assert found, request.path
    verb = {"POST": "create", "PUT": "update"}.get(request.method) or ("get" if found["name"] else "list")
    resource = "/".join(part for part in (found["plural"], found["sub"]) if part)
    return verb, found["group"] or "", resource


def look_at_a_pod(client: ClusterClient) -> None:
    client.read_pod("shop", "cart-0")
    client.list_pdbs("shop")
    for kind in OWNER_KINDS:
        client.read_owner("shop", kind, "cart")


def carry_out(client: ClusterClient) -> None:
    client.read_config_map("deschedui", "deschedui-policy")
    client.snapshot_lists()
    client.list_pods_brief()
    client.evict(EvictionRequest("shop", "cart-0", "u1"))
    at = datetime(2026, 11, 30, tzinfo=UTC)
    client.post_event(EventRequest("shop", "cart-0", "u1", "Evicted", "Evict", "gone", at, key="1"))
    hold_the_lease(client, at)


def hold_the_lease(client: ClusterClient, at: datetime) -> None:
    claim = LeaseClaim("us", 1, at)
    client.read_lease("deschedui", "deschedui")
    seen = client.create_lease("deschedui", "deschedui", claim)
    client.update_lease("deschedui", "deschedui", claim, seen=seen)


@pytest.fixture
def calls(connect: Connect) -> dict[str, set[Right]]:
    """What each account calls."""
    with serving(Answer(201, {"kind": "Status", "metadata": {"name": "deschedui"}})) as server:
        client = connect(server.url)
        look_at_a_pod(client)
        web = {used(request) for request in server.requests}
        carry_out(client)
        return {"deschedui-web": web, "deschedui-worker": {used(request) for request in server.requests}}


@pytest.mark.parametrize("account", ["deschedui-web", "deschedui-worker"])
def test_an_account_may_do_what_it_does_and_nothing_else(calls: dict[str, set[Right]], account: str) -> None:
    assert rights_of(account) == calls[account]


def test_the_web_account_changes_nothing() -> None:
    assert {verb for verb, _, _ in rights_of("deschedui-web")} <= {"get", "list"}


def test_nobody_may_delete_patch_or_use_wildcards() -> None:
    rights = rights_of("deschedui-web") | rights_of("deschedui-worker")
    assert not {verb for verb, _, _ in rights} & {"*", "delete", "deletecollection", "patch", "watch"}
    assert {right for right in rights if right[0] == "update"} == {
        ("update", "coordination.k8s.io", "leases")
    }
    assert not any("*" in part for right in rights for part in right)
