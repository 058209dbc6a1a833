"""Rights, as sets that can be compared: of ``deploy/rights.yaml``, of the roles of ``deploy/base``, of an audit log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
NAMESPACE = "deschedui"


class Right(NamedTuple):
    """One verb on one resource. ``namespace`` '': everywhere; ``name`` '': any."""

    account: str
    verb: str
    group: str
    resource: str
    namespace: str = ""
    name: str = ""

    def covers(self, used: Right) -> bool:
        """Whether this one permits what was done."""
        return (
            self[:4] == used[:4] and self.namespace in {"", used.namespace} and self.name in {"", used.name}
        )


def listed() -> dict[Right, Mapping[str, Any]]:
    """The rights of ``deploy/rights.yaml``, each with its entry."""
    accounts = yaml.safe_load((DEPLOY / "rights.yaml").read_text(encoding="utf-8"))
    return {
        Right(account, verb, entry["group"], entry["resource"], entry.get("namespace", ""), name): entry
        for account, entries in accounts.items()
        for entry in entries
        for verb in entry["verbs"]
        for name in entry.get("names", [""])
    }


def granted(objects: Iterable[Mapping[str, Any]]) -> list[Right]:
    """What the bindings among these objects give to service accounts."""
    found = {
        (each["kind"], each["metadata"].get("namespace", ""), each["metadata"]["name"]): each
        for each in objects
    }
    return [
        right
        for (kind, namespace, _), binding in found.items()
        if kind in {"ClusterRoleBinding", "RoleBinding"}
        for subject in binding["subjects"]
        for right in _of_role(found, binding["roleRef"], namespace, _account(subject))
    ]


def _account(subject: Mapping[str, Any]) -> str:
    assert (subject["kind"], subject["namespace"]) == ("ServiceAccount", NAMESPACE)
    return str(subject["name"])


def _of_role(
    found: Mapping[tuple[str, str, str], Mapping[str, Any]],
    reference: Mapping[str, str],
    namespace: str,
    account: str,
) -> Iterator[Right]:
    where = namespace if reference["kind"] == "Role" else ""
    for rule in found[reference["kind"], where, reference["name"]]["rules"]:
        assert set(rule) <= {"apiGroups", "resources", "resourceNames", "verbs"}
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                for verb in rule["verbs"]:
                    for name in rule.get("resourceNames", [""]):
                        yield Right(account, verb, group, resource, namespace, name)


def used(entries: Iterable[Mapping[str, Any]]) -> set[Right]:
    """What service accounts of ours did, by the API server's audit log; refused calls and ``/version`` left out."""
    return {
        _used(entry)
        for entry in entries
        if entry["user"]["username"].startswith(f"system:serviceaccount:{NAMESPACE}:")
        and "objectRef" in entry
        and entry["responseStatus"]["code"] != 403
    }


def _used(entry: Mapping[str, Any]) -> Right:
    what = entry["objectRef"]
    resource = "/".join(part for part in (what["resource"], what.get("subresource", "")) if part)
    name = "" if entry["verb"] == "create" and not what.get("subresource") else what.get("name", "")
    account = entry["user"]["username"].rpartition(":")[2]
    return Right(account, entry["verb"], what.get("apiGroup", ""), resource, what.get("namespace", ""), name)
