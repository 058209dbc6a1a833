"""Arguments of DefaultEvictor: which pods are protected, and whether an evicted pod must fit elsewhere."""

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import field

from deschedui.descheduler.plugins.arg_types import Args, ArgsProblem, GoDuration, Int32, Uint, unknown_words
from deschedui.descheduler.selectors import LabelSelector

SYSTEM_CRITICAL_PRIORITY: Final = 2_000_000_000
"""The highest threshold there is, and the one used where none is set."""

LOCAL_STORAGE: Final = "PodsWithLocalStorage"
SYSTEM_CRITICAL: Final = "SystemCriticalPods"
FAILED_BARE: Final = "FailedBarePods"
DAEMON_SET: Final = "DaemonSetPods"
WITH_PVC: Final = "PodsWithPVC"
WITHOUT_PDB: Final = "PodsWithoutPDB"
WITH_RESOURCE_CLAIMS: Final = "PodsWithResourceClaims"

DEFAULT_PROTECTIONS: Final = (LOCAL_STORAGE, SYSTEM_CRITICAL, FAILED_BARE, DAEMON_SET)
EXTRA_PROTECTIONS: Final = (WITH_PVC, WITHOUT_PDB, WITH_RESOURCE_CLAIMS)


class PriorityThreshold(Args, frozen=True):
    """Pods of this priority and above are protected. A name is that of a PriorityClass in the cluster."""

    value: Int32 | None = None
    name: str = ""


class StorageClass(Args, frozen=True):
    """A storage class whose volumes protect their pods."""

    name: str = ""


class PodsWithPVCConfig(Args, frozen=True):
    """Narrows PodsWithPVC to some storage classes; empty is all of them."""

    protected_storage_classes: tuple[StorageClass, ...] = ()


class PodProtectionsConfig(Args, frozen=True):
    """Details of protections, by their names."""

    pods_with_pvc: PodsWithPVCConfig | None = field(default=None, name="PodsWithPVC")


class PodProtections(Args, frozen=True):
    """Protections switched on beyond the default ones, and default ones switched off."""

    extra_enabled: tuple[str, ...] = ()
    default_disabled: tuple[str, ...] = ()
    config: PodProtectionsConfig | None = None


class DefaultEvictorArgs(Args, frozen=True):
    """As written in the policy. The resolved threshold is kept apart: ``Profile.priority_threshold``."""

    node_selector: str = ""
    label_selector: LabelSelector | None = None
    namespace_label_selector: LabelSelector | None = None
    priority_threshold: PriorityThreshold | None = None
    node_fit: bool = False
    min_replicas: Uint = 0
    min_pod_age: GoDuration | None = None
    no_eviction_policy: str = ""
    pod_protections: PodProtections = PodProtections()
    evict_local_storage_pods: bool = False
    evict_daemon_set_pods: bool = False
    evict_system_critical_pods: bool = False
    evict_failed_bare_pods: bool = False
    ignore_pvc_pods: bool = False
    ignore_pods_without_pdb: bool = field(default=False, name="ignorePodsWithoutPDB")

    @property
    def protections(self) -> frozenset[str]:
        """The active protections, by name. The deprecated flags count only where no list is given."""
        extra, disabled = self.pod_protections.extra_enabled, self.pod_protections.default_disabled
        if not (extra or disabled):
            extra, disabled = self.deprecated_choices()
        return frozenset(DEFAULT_PROTECTIONS) - frozenset(disabled) | frozenset(extra)

    @property
    def protected_storage_classes(self) -> frozenset[str]:
        """Names of the storage classes to which PodsWithPVC is narrowed; empty where it means all."""
        config = self.pod_protections.config and self.pod_protections.config.pods_with_pvc
        return (
            frozenset(storage.name for storage in config.protected_storage_classes) if config else frozenset()
        )

    def deprecated_choices(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """What the deprecated flags say, as the lists that replaced them: (extraEnabled, defaultDisabled)."""
        extra = ((self.ignore_pvc_pods, WITH_PVC), (self.ignore_pods_without_pdb, WITHOUT_PDB))
        disabled = (
            (self.evict_local_storage_pods, LOCAL_STORAGE),
            (self.evict_daemon_set_pods, DAEMON_SET),
            (self.evict_system_critical_pods, SYSTEM_CRITICAL),
            (self.evict_failed_bare_pods, FAILED_BARE),
        )
        return tuple(name for on, name in extra if on), tuple(name for on, name in disabled if on)


def problems(args: DefaultEvictorArgs) -> Iterator[ArgsProblem]:
    """Everything wrong with these arguments, in upstream's order and words."""
    threshold = args.priority_threshold
    if threshold and threshold.value is not None and threshold.name:
        yield ArgsProblem(
            "priorityThreshold",
            "priority threshold misconfigured, only one of priorityThreshold fields can be set",
        )
    if args.no_eviction_policy not in {"", "Preferred", "Mandatory"}:
        text = 'noEvictionPolicy accepts only ["Preferred" "Mandatory"] values'
        yield ArgsProblem("noEvictionPolicy", text)
    if args.pod_protections.extra_enabled or args.pod_protections.default_disabled:
        yield from _protection_problems(args)


def constructor_problems(args: DefaultEvictorArgs) -> Iterator[ArgsProblem]:
    """What upstream finds only when it builds the plugin; the first one ends that."""
    if args.label_selector and (problem := args.label_selector.problem()):
        yield ArgsProblem("labelSelector", problem)
    if args.namespace_label_selector and (problem := args.namespace_label_selector.problem()):
        text = f"unable to convert namespaceLabelSelector to label selector: {problem}"
        yield ArgsProblem("namespaceLabelSelector", text)


def warnings(args: DefaultEvictorArgs) -> Iterator[ArgsProblem]:
    """What is legal and hardly meant."""
    if args.min_replicas == 1:
        yield ArgsProblem("minReplicas", "minReplicas: 1 protects nothing; it has an effect from 2 on")
    if SYSTEM_CRITICAL not in args.protections and args.priority_threshold:
        yield ArgsProblem(
            "priorityThreshold",
            "priorityThreshold has no effect: the protection SystemCriticalPods is switched off, "
            "and the threshold goes with it",
        )


def _protection_problems(args: DefaultEvictorArgs) -> Iterator[ArgsProblem]:
    extra, disabled = args.pod_protections.extra_enabled, args.pod_protections.default_disabled
    if any(args.deprecated_choices()):
        yield ArgsProblem(
            "podProtections",
            "cannot use Deprecated fields alongside "
            "PodProtections.ExtraEnabled or PodProtections.DefaultDisabled",
        )
    yield from _bad_protections("extraEnabled", extra, EXTRA_PROTECTIONS)
    yield from _bad_protections("defaultDisabled", disabled, DEFAULT_PROTECTIONS)
    if len(set(disabled)) < len(disabled):
        text = "PodProtections.DefaultDisabled contains duplicate entries"
        yield ArgsProblem("podProtections.defaultDisabled", text)
    if len(set(extra)) < len(extra):
        yield ArgsProblem(
            "podProtections.extraEnabled", "PodProtections.ExtraEnabled contains duplicate entries"
        )
    if WITH_PVC in extra:
        yield from _storage_class_problems(args)


def _bad_protections(key: str, given: Sequence[str], allowed: Sequence[str]) -> Iterator[ArgsProblem]:
    field_name, options = key[0].upper() + key[1:], " ".join(allowed)
    for word in unknown_words(given, allowed):
        text = f'invalid pod protection policy in {field_name}: "{word}". Valid options are: [{options}]'
        yield ArgsProblem(f"podProtections.{key}", text)


def _storage_class_problems(args: DefaultEvictorArgs) -> Iterator[ArgsProblem]:
    config = args.pod_protections.config and args.pod_protections.config.pods_with_pvc
    for index, storage in enumerate(config.protected_storage_classes if config else ()):
        if not storage.name:
            text = f"PodProtections.Config.PodsWithPVC.ProtectedStorageClasses[{index}] name cannot be empty"
            path = f"podProtections.config.PodsWithPVC.protectedStorageClasses[{index}]"
            yield ArgsProblem(path, text)
