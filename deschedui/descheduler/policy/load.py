"""Reading a policy: everything that is wrong together, with its place, and beside it what upstream would print.

Opens no file, resolves no name, calls nothing. Stages are upstream's: decoding, validation, defaults, building.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from deschedui.descheduler.plugins import DEFAULT_EVICTOR, PLUGINS, SUPPORTED, ExtensionPoint
from deschedui.descheduler.plugins.arg_types import Args
from deschedui.descheduler.plugins.default_evictor_args import DefaultEvictorArgs
from deschedui.descheduler.policy.building import (
    Draft,
    check_profile,
    enabled_with_defaults,
    read_node_selector,
)
from deschedui.descheduler.policy.decode import Decoder, Fault, Place, Stray
from deschedui.descheduler.policy.entries import Entry, read_entries, warn_repeated
from deschedui.descheduler.policy.external import check_mentions, check_placed
from deschedui.descheduler.policy.hints import plugin_names, stray_key
from deschedui.descheduler.policy.metrics import check_metrics
from deschedui.descheduler.policy.model import Limits, Policy, Profile
from deschedui.descheduler.policy.nodes import Document, Path, UnreadableError, find, object_for_null
from deschedui.descheduler.policy.notices import warn_document, warn_profile
from deschedui.descheduler.policy.outer import DeschedulerPolicy, DeschedulerProfile, as_in_go
from deschedui.descheduler.policy.priority import (
    PriorityClasses,
    PriorityError,
    named_class,
    resolve_threshold,
)
from deschedui.descheduler.policy.report import Problem, Report, decoding_text, in_order
from deschedui.descheduler.policy.text import parse_text
from deschedui.descheduler.policy.version import Spelling, spelling_of

MAX_FILENAME: Final = 500


@dataclass(frozen=True, slots=True)
class LoadResult:
    """A policy, or why there is none.

    ``upstream_error`` is the exact text with which the descheduler itself would end (None: it would run),
    ``upstream_stage`` is ``load`` or ``build``. It can be set although the policy is good here.
    """

    policy: Policy | None
    errors: tuple[Problem, ...] = ()
    warnings: tuple[Problem, ...] = ()
    upstream_error: str | None = None
    upstream_stage: str = ""


def load(
    text: str,
    *,
    filename: str = "policy.yaml",
    supported: Collection[str] = SUPPORTED,
    priority_classes: PriorityClasses | None = None,
) -> LoadResult:
    """Read and judge a policy text of up to 1 MiB.

    With ``priority_classes`` (name to value) named thresholds are resolved as well; without, ``Policy.bind``
    does it later, when the cluster is known.
    """
    try:
        document = parse_text(text)
    except UnreadableError as error:
        return _unreadable(error, filename)
    report = Report(object_for_null(document.root), filename[:MAX_FILENAME])
    return _Loader(document, report, supported, priority_classes).load()


def _unreadable(error: UnreadableError, filename: str) -> LoadResult:
    upstream = decoding_text(filename, error.upstream) if error.upstream else None
    problem = Problem(str(error), line=error.line, column=error.column, upstream=upstream or "")
    return LoadResult(None, (problem,), (), upstream, "load" if upstream else "")


@dataclass(frozen=True, slots=True)
class _Loader:
    document: Document
    report: Report
    supported: Collection[str]
    priority_classes: PriorityClasses | None

    def load(self) -> LoadResult:
        policy = self._read()
        upstream, stage = self.report.upstream()
        errors, warnings = in_order(self.report.errors), in_order(self.report.warnings)
        return LoadResult(None if errors else policy, errors, warnings, upstream, stage)

    def _read(self) -> Policy | None:
        spelling = spelling_of(self.report.root, self.report)
        if spelling is None:
            return None
        outer, faulty = self._read_outer(spelling)
        entries = [self._entries(index, profile) for index, profile in enumerate(outer.profiles)]
        check_metrics(outer, self.report)
        thresholds = [self._threshold(of_profile) for of_profile in entries]
        selector = read_node_selector(outer.node_selector, self.report)
        profiles = tuple(
            self._profile(index, profile, entries[index], thresholds[index], sound=index not in faulty)
            for index, profile in enumerate(outer.profiles)
        )
        check_mentions(self.report.root, self.report)
        warn_document(self.document, outer, self.report)
        return Policy(
            profiles=profiles,
            node_selector=selector,
            limits=_limits(outer),
            grace_period_seconds=outer.grace_period_seconds,
            eviction_failure_event_notification=outer.eviction_failure_event_notification,
        )

    def _read_outer(self, spelling: Spelling) -> tuple[DeschedulerPolicy, frozenset[str | int]]:
        """The document around the arguments, and the indexes of profiles in which a type is wrong."""
        decoder = Decoder(in_key_order=not self.document.is_json, spelling=spelling)
        outer: DeschedulerPolicy = decoder.struct(self.report.root, DeschedulerPolicy, Place(()))
        faults = decoder.findings.faults
        if spelling is as_in_go:
            faults.extend(_args_without_version(outer))
        for fault in faults:
            upstream = self.report.fails_decoding(fault.upstream)
            self.report.error(fault.path, fault.message, hint=fault.hint, upstream=upstream)
        for stray in decoder.findings.strays:
            self._warn_stray(stray, hinted=spelling is not as_in_go)
        return outer, frozenset(
            fault.path[1] for fault in faults if fault.path[:1] == ("profiles",) and fault.path[1:]
        )

    def _warn_stray(self, stray: Stray, *, hinted: bool) -> None:
        if stray.repeated:
            warn_repeated(stray, self.report)
            return
        name = find(self.report.root, (*stray.path[:-1], "name"))
        hint = stray_key(stray.key, stray.owner, name.text if name else "") if hinted else ""
        self.report.warn(stray.path, f"unknown key {stray.key[:100]} is ignored", hint=hint)

    def _entries(self, index: int, profile: DeschedulerProfile) -> tuple[Entry, ...]:
        path = ("profiles", index, "pluginConfig")
        return read_entries(profile, path, self.report, is_json=self.document.is_json)

    def _threshold(self, entries: Sequence[Entry]) -> int | None:
        """The resolved priority threshold of a profile, or None where the cluster must be known for it."""
        entry = next((entry for entry in entries if entry.spec.name == DEFAULT_EVICTOR), None)
        args = entry.args if entry else None
        evictor = args if isinstance(args, DefaultEvictorArgs) else DefaultEvictorArgs()
        if named_class(evictor) and self.priority_classes is None:
            return None
        try:
            return resolve_threshold(evictor, self.priority_classes or {})
        except PriorityError as error:
            path = (*entry.path, "args", "priorityThreshold") if entry else ()
            hint = "create that PriorityClass, or write a value" if error.name else ""
            self.report.error(path, str(error), hint=hint, upstream=str(error))
            self.report.defaulting.append(str(error))
            return None

    def _profile(
        self,
        index: int,
        profile: DeschedulerProfile,
        entries: Sequence[Entry],
        threshold: int | None,
        *,
        sound: bool,
    ) -> Profile:
        enabled = enabled_with_defaults(profile.plugins)
        path: Path = ("profiles", index)
        draft = Draft(name=profile.name, path=path, plugins=profile.plugins, enabled=enabled, entries=entries)
        self._refuse_later(draft)
        if sound:
            check_profile(draft, self.report)
            check_placed(draft, self.report)
        warn_profile(profile, draft, self.report)
        return Profile(
            name=profile.name,
            index=index,
            deschedule=enabled[ExtensionPoint.DESCHEDULE],
            balance=enabled[ExtensionPoint.BALANCE],
            filter=enabled[ExtensionPoint.FILTER],
            preevictionfilter=enabled[ExtensionPoint.PRE_EVICTION_FILTER],
            args=MappingProxyType(_first_args(entries)),
            priority_threshold=threshold,
        )

    def _refuse_later(self, draft: Draft) -> None:
        """A plugin that does not run here yet is said to be so, once for each profile."""
        configured = [entry.spec.name for entry in draft.entries]
        enabled = [plugin for plugins in draft.enabled.values() for plugin in plugins]
        for plugin in dict.fromkeys([*configured, *enabled]):
            if plugin in PLUGINS and plugin not in self.supported:
                entry = draft.entry(plugin)
                place = (*entry.path, "name") if entry else draft.first_place(plugin)
                hint = f"supported are {plugin_names(self.supported)}"
                self.report.error(place, f"{plugin} is not supported yet", hint=hint)


def _args_without_version(outer: DeschedulerPolicy) -> Iterator[Fault]:
    """Without an apiVersion upstream cannot read any arguments."""
    for index, profile in enumerate(outer.profiles):
        for position, entry in enumerate(profile.plugin_config):
            if entry.args is not None:
                where = "Go struct field PluginConfig.Profiles.PluginConfigs.Args of type runtime.Object"
                yield Fault(
                    ("Profiles", index, "PluginConfigs", position, "Args"),
                    "arguments cannot be read without an apiVersion",
                    f"json: cannot unmarshal {entry.args.kind.value} into {where}",
                )


def _first_args(entries: Sequence[Entry]) -> dict[str, Args]:
    """Arguments by plugin; of several entries the first counts."""
    return {entry.spec.name: entry.args for entry in reversed(entries) if entry.args is not None}


def _limits(outer: DeschedulerPolicy) -> Limits:
    return Limits(
        total=outer.max_no_of_pods_to_evict_total,
        per_node=outer.max_no_of_pods_to_evict_per_node,
        per_namespace=outer.max_no_of_pods_to_evict_per_namespace,
    )
