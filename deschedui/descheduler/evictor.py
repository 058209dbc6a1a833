"""DefaultEvictor: which pods may be evicted at all, and whether they have somewhere to go.

Rules and their order: the descheduler's semantics, sections 4.2 to 4.5. Every objection is collected, each
as our sentence with upstream's own text beside it. What depends on the evictions assumed so far (replicas,
node fit) is told apart from what does not, so that the latter is judged once for a pod and a cycle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Final

import msgspec

from . import durations
from .nodefit import UPSTREAM_NO_FIT, NodeFit
from .nodeset import NodeSet
from .objects import Pod, Volume
from .overlay import EvictedPods, Overlay
from .plugins.default_evictor_args import (
    DAEMON_SET,
    FAILED_BARE,
    LOCAL_STORAGE,
    SYSTEM_CRITICAL,
    SYSTEM_CRITICAL_PRIORITY,
    WITH_PVC,
    WITH_RESOURCE_CLAIMS,
    WITHOUT_PDB,
    DefaultEvictorArgs,
)
from .selectors import SelectorError, parse_string_selector
from .snapshot import Snapshot

EVICT_ANNOTATION: Final = "descheduler.alpha.kubernetes.io/evict"
PREFER_NO_EVICTION_ANNOTATION: Final = "descheduler.alpha.kubernetes.io/prefer-no-eviction"
MIRROR_ANNOTATION: Final = "kubernetes.io/config.mirror"
SOURCE_ANNOTATION: Final = "kubernetes.io/config.source"

CHECKS: Final = {
    "preferNoEviction": "pods that prefer not to be evicted",
    "mirror": "mirror pods",
    "static": "static pods",
    "terminating": "pods that are terminating already",
    "systemCritical": "system-critical pods",
    "priority": "pods with a protected priority",
    "bare": "pods without an owner",
    "localStorage": "pods with local storage",
    "daemonSet": "DaemonSet pods",
    "pvc": "pods with persistent volume claims",
    "pdb": "pods without a PodDisruptionBudget",
    "resourceClaims": "pods with resource claims",
    "labels": "pods whose labels the policy does not select",
    "minReplicas": "pods whose owner has too few replicas",
    "minPodAge": "pods that are too young",
    "evictorNodeSelector": "pods held back by a nodeSelector that cannot be read",
    "namespaceLabels": "pods of namespaces that the policy does not select",
    "namespace": "pods of namespaces that the plugin leaves out",
    "missingUid": "pods without a UID",
    "record": "pods that were decided or asked about before",
}
"""What the machine words of :class:`Objection` count, for people; see :func:`counted`."""


class Objection(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """One reason why a pod is left alone."""

    check: str
    """A word for machines; see :data:`CHECKS`."""
    reason: str
    """A clause whose subject is the pod: ``is a mirror pod``."""
    upstream: str
    """What the real program logs, '' where it says nothing."""


def counted(check: str) -> str:
    """What pods with this objection are called in a count: ``DaemonSet pods``."""
    kind, _, cause = check.partition(".")
    if kind == "nodeFit":
        return f"pods that fit on no other node: {cause}"
    return CHECKS.get(check, check)


@dataclass(frozen=True, eq=False)
class DefaultEvictor:
    """The evictor of one profile over one snapshot. ``threshold`` is its priority threshold as a number."""

    snapshot: Snapshot
    args: DefaultEvictorArgs
    threshold: int
    now: datetime

    # ---- the filter

    def objections(self, number: int, overlay: Overlay) -> tuple[Objection, ...]:
        """All that the filter has against a pod, in upstream's order; empty if it may be evicted."""
        first, last = self.fixed(number)
        changing = self.changing(number, overlay)
        return (*first, *changing, *last) if changing else first + last

    def fixed(self, number: int) -> tuple[tuple[Objection, ...], tuple[Objection, ...]]:
        """The objections that no eviction changes: those before the replicas' turn, and those after it."""
        found = self._fixed.get(number)
        if found is None:
            found = self._fixed[number] = self._judge(self.snapshot.pods[number])
        return found

    def changing(self, number: int, overlay: Overlay) -> tuple[Objection, ...]:
        """The objections that depend on the evictions assumed so far."""
        pod = self.snapshot.pods[number]
        if EVICT_ANNOTATION in pod.metadata.annotations:
            return ()
        found = self._too_few_replicas(pod, overlay)
        if overlay.assume is EvictedPods.TERMINATE and number in overlay.evicted:
            found = (Objection("terminating", "is about to be evicted already", "pod is terminating"), *found)
        return found

    def _judge(self, pod: Pod) -> tuple[tuple[Objection, ...], tuple[Objection, ...]]:
        annotations = pod.metadata.annotations
        if EVICT_ANNOTATION in annotations:
            return (), ()
        if self.args.no_eviction_policy == "Mandatory" and PREFER_NO_EVICTION_ANNOTATION in annotations:
            reason = f"carries {PREFER_NO_EVICTION_ANNOTATION}, which this policy treats as binding"
            return (Objection("preferNoEviction", reason, ""),), ()
        found = (judge(pod) for judge in self._judges)
        return tuple(objection for objection in found if objection), tuple(self._too_young(pod))

    @cached_property
    def _judges(self) -> tuple[Callable[[Pod], Objection | None], ...]:
        """The checks that are active, in upstream's order."""
        on = self.args.protections
        table = (
            (True, _mirror),
            (True, _static),
            (True, _terminating),
            (SYSTEM_CRITICAL in on, _system_critical),
            (SYSTEM_CRITICAL in on, self._priority),
            (FAILED_BARE in on, _bare),
            (FAILED_BARE not in on, _bare_and_not_failed),
            (LOCAL_STORAGE in on, _local_storage),
            (DAEMON_SET in on, _daemon_set),
            (WITH_PVC in on, self._claims),
            (WITHOUT_PDB in on, self._without_pdb),
            (WITH_RESOURCE_CLAIMS in on, _resource_claims),
            (_restricts(self.args), self._labels),
        )
        return tuple(judge for active, judge in table if active)

    def _priority(self, pod: Pod) -> Objection | None:
        if pod.spec.priority is None or pod.spec.priority < self.threshold:
            return None
        return Objection(
            "priority",
            f"has priority {pod.spec.priority}; the policy protects priorities from {self.threshold} on",
            "pod has higher priority than specified priority class threshold",
        )

    def _claims(self, pod: Pod) -> Objection | None:
        claims = [v.persistent_volume_claim.claim_name for v in pod.spec.volumes if v.persistent_volume_claim]
        if not claims:
            return None
        if self.args.protected_storage_classes:
            return self._protected_class(pod.metadata.namespace, claims)
        return Objection(
            "pvc",
            f"uses persistent volume claims: {_few(claims)}",
            "pod with PVC is protected against eviction",
        )

    def _protected_class(self, namespace: str, claims: Iterable[str]) -> Objection | None:
        classes: list[str] = []
        for name in claims:
            claim = self.snapshot.claim(namespace, name)
            if claim is None:
                missing = f'persistentvolumeclaim "{name}" not found'
                upstream = f'failed to get persistent volume claim "{namespace}"/"{name}": {missing}'
                return Objection(
                    "pvc", f"uses the persistent volume claim {name}, which does not exist", upstream
                )
            if not claim.spec.storage_class_name:
                upstream = f'failed to resolve storage class for pod "{namespace}"/"{name}"'
                return Objection(
                    "pvc", f"uses the persistent volume claim {name}, which has no storage class", upstream
                )
            classes.append(claim.spec.storage_class_name)
        protected = next((name for name in classes if name in self.args.protected_storage_classes), None)
        if protected is None:
            return None
        reason = f"uses a volume of the storage class {protected}, which the policy protects"
        return Objection("pvc", reason, f'pod using protected storage class "{protected}"')

    def _without_pdb(self, pod: Pod) -> Objection | None:
        if self.snapshot.pdbs_for(pod):
            return None
        return Objection(
            "pdb",
            "is covered by no PodDisruptionBudget, and the policy protects such pods",
            "pod does not have a PodDisruptionBudget and is protected against eviction",
        )

    def _labels(self, pod: Pod) -> Objection | None:
        selector = self.args.label_selector
        if selector is None or selector.matches(pod.metadata.labels):
            return None
        return Objection(
            "labels",
            "has labels that the policy's labelSelector does not select",
            "pod labels do not match the labelSelector filter in the policy parameter",
        )

    def _too_few_replicas(self, pod: Pod, overlay: Overlay) -> tuple[Objection, ...]:
        wanted, owners = self.args.min_replicas, pod.metadata.owner_references
        if wanted < 2 or len(owners) != 1:
            return ()
        count = overlay.replicas(owners[0].uid)
        if count >= wanted:
            return ()
        owner = f"{owners[0].kind} {owners[0].name}"
        counts = f"{count} replica{'' if count == 1 else 's'}"
        return (
            Objection(
                "minReplicas",
                f"belongs to {owner}, which has {counts}; the policy evicts from {wanted} replicas on",
                f"owner has {count} replicas which is less than minReplicas of {wanted}",
            ),
        )

    def _too_young(self, pod: Pod) -> Iterator[Objection]:
        minimum, started = self.args.min_pod_age, pod.status.start_time
        if minimum is None or (started is not None and self.now - started >= minimum):
            return
        text = f"&Duration{{Duration:{durations.golang(minimum)},}}"
        upstream = f"pod age is not older than MinPodAge: {text} seconds"
        if started is None:
            reason = (
                f"has not started yet; the policy protects pods for their first {durations.limit(minimum)}"
            )
        else:
            age = self.now - started
            age_text, least = durations.against(age, minimum)
            reason = f"started {age_text} ago; the policy protects pods for their first {least}"
        yield Objection("minPodAge", reason, upstream)

    @cached_property
    def _fixed(self) -> dict[int, tuple[tuple[Objection, ...], tuple[Objection, ...]]]:
        return {}

    # ---- the pre-eviction filter

    def never_minds(self, number: int) -> bool:
        """Whether the pre-eviction filter lets this pod through whatever else is evicted."""
        if self._namespace_labels(self.snapshot.pods[number]) is not None or self._bad_node_selector:
            return False
        return not self.args.node_fit or self.node_fit.fits_whatever_goes(number)

    def counted_owner(self, number: int) -> str:
        """The owner whose replicas ``minReplicas`` counts for this pod, or '' if it counts none."""
        owners = self.snapshot.pods[number].metadata.owner_references
        if self.args.min_replicas < 2 or len(owners) != 1 or EVICT_ANNOTATION in self._annotations(number):
            return ""
        return owners[0].uid

    def _annotations(self, number: int) -> Mapping[str, str]:
        return self.snapshot.pods[number].metadata.annotations

    @property
    def changes_with_evictions(self) -> bool:
        """Whether an assumed eviction can change what this evictor says of other pods."""
        return self.args.min_replicas >= 2 or self.args.node_fit

    def before_eviction(self, number: int, overlay: Overlay) -> tuple[Objection, ...]:
        """What the pre-eviction filter has against a pod that passed the filter; no annotation bypasses it."""
        if not (self.args.node_fit or self._selects_namespaces):
            return ()
        found = (self._fits_nowhere(number, overlay), self._namespace_labels(self.snapshot.pods[number]))
        return tuple(objection for objection in found if objection)

    @cached_property
    def _selects_namespaces(self) -> bool:
        selector = self.args.namespace_label_selector
        return selector is not None and bool(selector.match_labels or selector.match_expressions)

    def _namespace_labels(self, pod: Pod) -> Objection | None:
        selector = self.args.namespace_label_selector
        if selector is None or not self._selects_namespaces:
            return None
        namespace = self.snapshot.namespaces.get(pod.metadata.namespace)
        if namespace is not None and selector.matches(namespace.metadata.labels):
            return None
        return Objection(
            "namespaceLabels",
            f"is in namespace {pod.metadata.namespace}, which namespaceLabelSelector does not select",
            "pod namespace do not match the namespaceLabelSelector filter in the policy parameter",
        )

    def _fits_nowhere(self, number: int, overlay: Overlay) -> Objection | None:
        if not self.args.node_fit:
            return None
        if self._bad_node_selector:
            reason = (
                f"is left alone: DefaultEvictor's nodeSelector cannot be read ({self._bad_node_selector})"
            )
            return Objection("evictorNodeSelector", reason, "unable to list ready nodes")
        if self.node_fit.fits_elsewhere(number, overlay):
            return None
        cause, reason = self.node_fit.why_nowhere(number)
        return Objection(f"nodeFit.{cause}", reason, UPSTREAM_NO_FIT)

    @cached_property
    def node_fit(self) -> NodeFit:
        """Fit over all ready nodes that DefaultEvictor's own nodeSelector selects, not the policy's."""
        return NodeFit(self.snapshot, self._fit_nodes)

    @cached_property
    def _fit_nodes(self) -> NodeSet:
        index = self.snapshot.node_index
        if self._bad_node_selector:
            return 0
        selector = parse_string_selector(self.args.node_selector)
        return index.ready & index.where(lambda node: selector.matches(node.metadata.labels))

    @cached_property
    def _bad_node_selector(self) -> str:
        try:
            parse_string_selector(self.args.node_selector)
        except SelectorError as error:
            return str(error)
        return ""


def warnings_of(pod: Pod) -> tuple[str, ...]:
    """What somebody who looks at this pod should know before it is decided about."""
    value = pod.metadata.annotations.get(EVICT_ANNOTATION)
    if value is None:
        return ()
    effect = f"the annotation {EVICT_ANNOTATION} lifts every protection of DefaultEvictor, whatever its value"
    if value.strip().lower() not in {"false", "no", "0", "off"}:
        return (effect,)
    instead = f"to protect it use {PREFER_NO_EVICTION_ANNOTATION} and noEvictionPolicy: Mandatory"
    return (f'{EVICT_ANNOTATION}: "{value}" does not protect this pod: {effect}; {instead}',)


def _mirror(pod: Pod) -> Objection | None:
    if MIRROR_ANNOTATION not in pod.metadata.annotations:
        return None
    reason = "is a mirror pod: it only shows what the kubelet runs from a file on its node"
    return Objection("mirror", reason, "pod is a mirror pod")


def _static(pod: Pod) -> Objection | None:
    if pod.metadata.annotations.get(SOURCE_ANNOTATION, "api") == "api":
        return None
    return Objection(
        "static", "is a static pod: the kubelet would start it again on its node", "pod is a static pod"
    )


def _terminating(pod: Pod) -> Objection | None:
    if pod.metadata.deletion_timestamp is None:
        return None
    return Objection("terminating", "is already terminating", "pod is terminating")


def _system_critical(pod: Pod) -> Objection | None:
    if pod.spec.priority is None or pod.spec.priority < SYSTEM_CRITICAL_PRIORITY:
        return None
    return Objection(
        "systemCritical",
        f"has the system-critical priority {pod.spec.priority}",
        "pod has system critical priority and is protected against eviction",
    )


def _bare(pod: Pod) -> Objection | None:
    if pod.metadata.owner_references:
        return None
    return Objection(
        "bare", "has no owner, so nothing would create it again", "pod does not have any ownerRefs"
    )


def _bare_and_not_failed(pod: Pod) -> Objection | None:
    if pod.metadata.owner_references or pod.status.phase == "Failed":
        return None
    return Objection(
        "bare",
        f"has no owner and has not failed (it is {pod.status.phase or 'in no phase'}), "
        "so nothing would create it again",
        "pod does not have any ownerRefs and is not in failed phase",
    )


def _local_storage(pod: Pod) -> Objection | None:
    volumes = [f"{volume.name} ({kind})" for volume in pod.spec.volumes if (kind := _local_kind(volume))]
    if not volumes:
        return None
    reason = f"has local storage that would be lost: {_few(volumes)}"
    return Objection("localStorage", reason, "pod has local storage and is protected against eviction")


def _daemon_set(pod: Pod) -> Objection | None:
    owner = next((owner for owner in pod.metadata.owner_references if owner.kind == "DaemonSet"), None)
    if owner is None:
        return None
    return Objection(
        "daemonSet",
        f"belongs to DaemonSet {owner.name}, which would start it again on the same node",
        "daemonset pods are protected against eviction",
    )


def _resource_claims(pod: Pod) -> Objection | None:
    if not pod.spec.resource_claims:
        return None
    return Objection(
        "resourceClaims",
        f"uses resource claims ({_few([claim.name for claim in pod.spec.resource_claims])})",
        "pod has ResourceClaims and descheduler is configured to protect ResourceClaims pods",
    )


def _restricts(args: DefaultEvictorArgs) -> bool:
    selector = args.label_selector
    return selector is not None and bool(selector.match_labels or selector.match_expressions)


def _local_kind(volume: Volume) -> str:
    if volume.host_path is not None:
        return "hostPath"
    return "emptyDir" if volume.empty_dir is not None else ""


def _few(names: list[str], most: int = 3) -> str:
    shown = ", ".join(names[:most])
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown
