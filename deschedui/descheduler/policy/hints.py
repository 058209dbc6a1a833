"""What somebody probably meant: misspelt, misplaced and outdated names."""

import difflib
from collections.abc import Collection, Iterable
from typing import Final

import msgspec

from deschedui.descheduler.plugins import PLUGINS
from deschedui.descheduler.policy.decode import fields_of
from deschedui.descheduler.policy.outer import DeschedulerPolicy, DeschedulerProfile, PluginConfig, Plugins

_LONGEST: Final = 100
_OUTDATED: Final = {
    "includeSoftConstraints": "removed: use constraints: [DoNotSchedule, ScheduleAnyway]",
    "maxNoOfPodsToEvictPerCluster": "for a limit on the whole cycle write maxNoOfPodsToEvictTotal",
    "maxPodsToEvictPerNode": "write maxNoOfPodsToEvictPerNode",
    "maxPodsToEvictPerNamespace": "write maxNoOfPodsToEvictPerNamespace",
    "strategies": "that was v1alpha1: write profiles with pluginConfig and plugins",
    "podStatusPhases": "write states",
    "podStatuses": "write states",
    "thresholdPriority": "write priorityThreshold: {value: …} under the args of DefaultEvictor",
    "thresholdPriorityClassName": "write priorityThreshold: {name: …} under the args of DefaultEvictor",
    "priorityClassName": "write priorityThreshold: {name: …} under the args of DefaultEvictor",
}
"""Names of older versions and of the documentation's earlier wordings, with what to write now."""


def misspelling(word: str, known: Iterable[str]) -> str:
    """The hint for a name that nobody knows, or ''."""
    close = nearest(word, known)
    return f"did you mean {close}?" if close else ""


def nearest(word: str, known: Iterable[str]) -> str:
    """The known name that looks most like a word, whatever its case, or ''."""
    by_lower = {name.lower(): name for name in known}
    found = difflib.get_close_matches(word[:_LONGEST].lower(), by_lower, n=1, cutoff=0.7)
    return by_lower[found[0]] if found else ""


def stray_key(key: str, owner: type[msgspec.Struct], plugin: str = "") -> str:
    """The hint for a key that ``owner`` does not have. ``plugin`` is the one whose entry it stands in, or ''."""
    known = fields_of(owner)
    exact = next((name for name in known if name.lower() == key.lower()), "")
    if exact:
        return f"did you mean {exact}?"
    return _OUTDATED.get(key) or _misplaced(key, owner, plugin) or misspelling(key, known)


def _misplaced(key: str, owner: type[msgspec.Struct], plugin: str) -> str:
    if owner is PluginConfig and plugin in PLUGINS and key in fields_of(PLUGINS[plugin].args):
        return "it belongs under args"
    homes: tuple[tuple[type[msgspec.Struct], str], ...] = (
        (DeschedulerPolicy, "it belongs to the top level of the policy"),
        (DeschedulerProfile, "it belongs into a profile"),
        (Plugins, "it belongs under plugins"),
    )
    found = next((text for home, text in homes if home is not owner and key in fields_of(home)), "")
    return found or _other_plugin(key, owner)


def _other_plugin(key: str, owner: type[msgspec.Struct]) -> str:
    homes = [name for name, spec in PLUGINS.items() if spec.args is not owner and key in fields_of(spec.args)]
    return f"it belongs under the args of {homes[0]}" if len(homes) == 1 else ""


def plugin_names(supported: Collection[str]) -> str:
    """The names of the plugins that run, for a sentence."""
    return ", ".join(sorted(supported))
