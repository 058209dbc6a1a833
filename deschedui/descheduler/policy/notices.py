"""What upstream accepts and ignores without a word. Each becomes a warning."""

from collections.abc import Sequence
from typing import Final

from deschedui.descheduler.plugins import DEFAULT_EVICTOR, EXTERNAL_DECISION, PLUGINS, ExtensionPoint
from deschedui.descheduler.plugins.default_evictor_args import DefaultEvictorArgs
from deschedui.descheduler.policy.building import Draft
from deschedui.descheduler.policy.entries import Entry
from deschedui.descheduler.policy.nodes import Document, Path
from deschedui.descheduler.policy.outer import UNREAD_POINTS, DeschedulerPolicy, DeschedulerProfile
from deschedui.descheduler.policy.report import Report
from deschedui.descheduler.selectors import SelectorError, parse_string_selector

_LIMITS: Final = {
    "maxNoOfPodsToEvictTotal": "max_no_of_pods_to_evict_total",
    "maxNoOfPodsToEvictPerNode": "max_no_of_pods_to_evict_per_node",
    "maxNoOfPodsToEvictPerNamespace": "max_no_of_pods_to_evict_per_namespace",
}


def warn_document(document: Document, outer: DeschedulerPolicy, report: Report) -> None:
    """What is odd about a policy as a whole."""
    if document.more:
        report.warn((), "only the first document of the text is read; the others are ignored")
    for key, attribute in _LIMITS.items():
        if getattr(outer, attribute) == 0:
            report.warn((key,), f"{key}: limit 0 blocks all evictions; remove the key for no limit")
    if outer.metrics_collector or outer.metrics_providers:
        key = "metricsProviders" if outer.metrics_providers else "metricsCollector"
        report.warn((key,), f"{key} has no effect: no plugin that runs here reads usage from metrics")
    if not outer.profiles:
        report.warn((), "the policy has no profiles: nothing is nominated")
    _warn_same_names(outer.profiles, report)


def warn_profile(profile: DeschedulerProfile, draft: Draft, report: Report) -> None:
    """What is odd about one profile."""
    _warn_unread_points(profile, draft.path, report)
    _warn_enabled(draft, report)
    _warn_entries(draft, report)
    _warn_evictor_selector(draft.entry(DEFAULT_EVICTOR), report)


def _warn_same_names(profiles: Sequence[DeschedulerProfile], report: Report) -> None:
    seen: set[str] = set()
    for index, name in enumerate(profile.name for profile in profiles):
        if name in seen:
            shown = f'"{name[:100]}"' if name else "no name"
            message = f"another profile has {shown} too: reports cannot tell them apart"
            report.warn(("profiles", index, "name"), message)
        seen.add(name)


def _warn_unread_points(profile: DeschedulerProfile, path: Path, report: Report) -> None:
    for point in UNREAD_POINTS:
        if profile.plugins.at(point).enabled:
            report.warn((*path, "plugins", point), f"{point} has no effect: its plugins never run")
    for point in (*UNREAD_POINTS, *(point.value for point in ExtensionPoint)):
        if profile.plugins.at(point).disabled:
            place = (*path, "plugins", point, "disabled")
            report.warn(place, "disabled has no effect: leave a plugin out of enabled instead")


def _warn_enabled(draft: Draft, report: Report) -> None:
    for point, plugins in draft.enabled.items():
        for plugin in dict.fromkeys(plugins):
            if (times := plugins.count(plugin)) > 1:
                report.warn(
                    draft.place(point, plugin), f"{plugin[:100]} is enabled {times} times and runs as often"
                )
    if not draft.enabled[ExtensionPoint.DESCHEDULE] and not draft.enabled[ExtensionPoint.BALANCE]:
        message = "the profile enables no plugin under deschedule or balance: it nominates nothing"
        report.warn(draft.path, message)


def _warn_entries(draft: Draft, report: Report) -> None:
    for entry in draft.entries:
        name, place = entry.spec.name, (*entry.path, "name")
        if draft.entry(name) is not entry:
            report.warn(place, f"{name} has an entry above, which counts: this one is only checked")
        elif not draft.points(name) and name != EXTERNAL_DECISION:
            report.warn(place, f"{name} is configured and not enabled: it does not run", hint=_where(name))


def _where(plugin: str) -> str:
    points = " or ".join(point.value for point in ExtensionPoint if point in PLUGINS[plugin].points)
    return f"enable it under plugins.{points}.enabled"


def _warn_evictor_selector(entry: Entry | None, report: Report) -> None:
    if entry is None or not isinstance(entry.args, DefaultEvictorArgs):
        return
    try:
        parse_string_selector(entry.args.node_selector)
    except SelectorError as error:
        effect = "no pod can be evicted" if entry.args.node_fit else "it has an effect with nodeFit only"
        place = (*entry.path, "args", "nodeSelector")
        report.warn(place, f"nodeSelector cannot be read: {error}; {effect}")
