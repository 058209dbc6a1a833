"""Clusters as rows: made, armed, paused and set up by admins. Each change is audited in its own transaction."""

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django.db import IntegrityError
from pydantic import ValidationError

from decisions.models import OPEN, Cluster, ClusterSettings, Decision, TeamReason
from decisions.services import timeline, verdicts
from decisions.services.actors import Actor
from decisions.services.errors import Invalid

MIN_INTERVAL, MAX_INTERVAL = 10, 24 * 3600
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_CONFIGMAP = re.compile(r"[a-z0-9][a-z0-9-]{0,62}/[a-z0-9][a-z0-9.-]{0,252}/[A-Za-z0-9._-]{1,253}")
_LONGEST = {"kubeconfig": 500, "context": 200, "policy_file": 500, "policy_configmap": 600}
_FIELDS = ("in_cluster", "kubeconfig", "context", "policy_file", "policy_configmap", "interval_seconds")
_REACHED_BY = {"in_cluster", "kubeconfig", "context"}


# --- making and setting up --------------------------------------------------------------------------------


def create(
    *,
    name: str,
    in_cluster: bool = False,
    kubeconfig: str = "",
    context: str = "",
    policy_file: str = "",
    policy_configmap: str = "",
    interval_seconds: int = 300,
    settings: Mapping[str, Any] | None = None,
    by: Actor,
    now: datetime,
) -> Cluster:
    """Add a cluster. It only observes (dry runs) until it is armed.

    Raises:
        Invalid: the name is taken or is no DNS label, or a value cannot be used.
    """
    if not _NAME.fullmatch(name):
        raise Invalid("A cluster's name has lower-case letters, digits and dashes, at most 63.", "name")
    row = Cluster(
        name=name,
        in_cluster=in_cluster,
        kubeconfig=kubeconfig.strip(),
        context=context.strip(),
        policy_file=policy_file.strip(),
        policy_configmap=policy_configmap.strip(),
        interval_seconds=interval_seconds,
        overrides=_checked_overrides(settings or {}),
    )
    _check(row)
    try:
        with timeline.transaction():
            row.save(force_insert=True)
            timeline.audit("cluster added", at=now, by=by, cluster=row, subject=name, detail=_shown(row))
    except IntegrityError as error:
        raise Invalid(f"There is a cluster {name} already.", "name") from error
    return row


def change(*, cluster: Cluster, by: Actor, now: datetime, **fields: Any) -> Cluster:
    """Change how a cluster is reached, where its policy is read, or its interval.

    Args:
        fields: any of in_cluster, kubeconfig, context, policy_file, policy_configmap, interval_seconds.

    Raises:
        Invalid: a field is unknown, or its value cannot be used.
    """
    if unknown := sorted(set(fields) - set(_FIELDS)):
        raise Invalid(f"A cluster has no field {unknown[0]}.", unknown[0])
    with timeline.transaction():
        row = Cluster.objects.select_for_update(no_key=True).get(pk=cluster.pk)
        before = _shown(row)
        for name, value in fields.items():
            setattr(row, name, value.strip() if isinstance(value, str) else value)
        _check(row)
        changes = _differences(before, _shown(row))
        if not changes:
            return row
        if "interval_seconds" in changes and row.next_cycle_at is not None:
            row.next_cycle_at = min(row.next_cycle_at, now + timedelta(seconds=row.interval_seconds))
        if _REACHED_BY & changes.keys():
            row.lease_checked_by = ""  # It may be another cluster now; the Lease that was ours is not there.
        row.save(update_fields=[*changes, "next_cycle_at", "lease_checked_by"])
        timeline.audit("cluster changed", at=now, by=by, cluster=row, subject=row.name, detail=changes)
    return row


def change_settings(*, cluster: Cluster, changes: Mapping[str, Any], by: Actor, now: datetime) -> Cluster:
    """Change settings of a cluster; None sets one back to its default. Only what differs is stored.

    Raises:
        Invalid: a setting is unknown or out of range.
    """
    with timeline.transaction():
        row = Cluster.objects.select_for_update(no_key=True).get(pk=cluster.pk)
        before = row.settings.model_dump(mode="json")
        wanted = {name: value for name, value in {**row.overrides, **changes}.items() if value is not None}
        row.overrides = _checked_overrides(wanted)
        differing = _differences(before, row.settings.model_dump(mode="json"))
        if differing:
            row.save(update_fields=["overrides"])
            timeline.audit("settings changed", at=now, by=by, cluster=row, subject=row.name, detail=differing)
    return row


def _checked_overrides(wanted: Mapping[str, Any]) -> dict[str, Any]:
    try:
        settings = ClusterSettings.model_validate(dict(wanted))
    except ValidationError as failure:
        error = failure.errors()[0]
        field = str(error["loc"][0]) if error["loc"] else ""
        raise Invalid(f"{_title(field)}: {error['msg']}.", field) from failure
    return settings.model_dump(mode="json", exclude_defaults=True)


def _title(field: str) -> str:
    known = ClusterSettings.model_fields.get(field)
    return known.title or field if known else f"There is no setting {field}"


def _check(row: Cluster) -> None:
    if not MIN_INTERVAL <= row.interval_seconds <= MAX_INTERVAL:
        raise Invalid(f"The interval is between {MIN_INTERVAL} seconds and 24 hours.", "interval_seconds")
    if row.in_cluster and (row.kubeconfig or row.context):
        raise Invalid(
            "In-cluster uses our service account: leave kubeconfig and context empty.", "in_cluster"
        )
    if row.policy_file and row.policy_configmap:
        raise Invalid("The policy comes from a file or from a ConfigMap, not from both.", "policy_configmap")
    if row.policy_configmap and not _CONFIGMAP.fullmatch(row.policy_configmap):
        raise Invalid("Write the ConfigMap as namespace/name/key.", "policy_configmap")
    for field, longest in _LONGEST.items():
        if len(getattr(row, field)) > longest:
            raise Invalid("This is too long.", field)


def _shown(row: Cluster) -> dict[str, Any]:
    return {name: getattr(row, name) for name in _FIELDS}


def _differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    return {name: [before[name], value] for name, value in after.items() if before[name] != value}


# --- armed, paused ----------------------------------------------------------------------------------------


def arm(*, cluster: Cluster, by: Actor, now: datetime) -> Cluster:
    """From now on cycles make decisions, doors record, and what is allowed is carried out."""
    with timeline.transaction():
        won = Cluster.objects.filter(pk=cluster.pk, armed=False).update(
            armed=True, armed_at=now, armed_by=by.name[:200]
        )
        if won:
            timeline.audit("armed", at=now, by=by, cluster=cluster, subject=cluster.name)
    return Cluster.objects.get(pk=cluster.pk)


def disarm(*, cluster: Cluster, by: Actor, now: datetime) -> Cluster:
    """Only observe from now on, and withdraw every open decision that is not evicting, accepted or in background.

    The update locks the cluster's row, on which cycles wait before each decision they record: none of theirs
    can slip in between.
    """
    with timeline.transaction():
        won = Cluster.objects.filter(pk=cluster.pk, armed=True).update(armed=False)
        if won:
            withdrawn = verdicts.withdraw(
                decisions=Decision.objects.filter(OPEN, cluster_id=cluster.pk),
                why=f"{by.name} disarmed the cluster",
                by=by,
                now=now,
            )
            detail = {"withdrawn": withdrawn}
            timeline.audit("disarmed", at=now, by=by, cluster=cluster, subject=cluster.name, detail=detail)
    return Cluster.objects.get(pk=cluster.pk)


def pause(*, cluster: Cluster, by: Actor, now: datetime) -> Cluster:
    """No cycle starts by time; the doors and what was decided go on."""
    return _set_paused(cluster, to=True, by=by, now=now)


def resume(*, cluster: Cluster, by: Actor, now: datetime) -> Cluster:
    """Cycles start by time again, the first one at once where one was due."""
    return _set_paused(cluster, to=False, by=by, now=now)


def _set_paused(cluster: Cluster, *, to: bool, by: Actor, now: datetime) -> Cluster:
    with timeline.transaction():
        if Cluster.objects.filter(pk=cluster.pk, paused=not to).update(paused=to):
            what = "paused" if to else "resumed"
            timeline.audit(what, at=now, by=by, cluster=cluster, subject=cluster.name)
    return Cluster.objects.get(pk=cluster.pk)


# --- for the team -----------------------------------------------------------------------------------------


def add_team_reason(*, text: str, by: Actor, now: datetime) -> None:
    """A reason that is one key away for everybody; one that is there already stays."""
    with timeline.transaction():
        _, made = TeamReason.objects.get_or_create(text=text)
        if made:
            timeline.audit("team reason added", at=now, by=by, subject=text)


def remove_team_reason(*, reason_id: int, by: Actor, now: datetime) -> None:
    """Take it away, if it is still there."""
    with timeline.transaction():
        reason = TeamReason.objects.filter(pk=reason_id).first()
        if reason is not None and TeamReason.objects.filter(pk=reason_id).delete()[0]:
            timeline.audit("team reason taken away", at=now, by=by, subject=reason.text)
