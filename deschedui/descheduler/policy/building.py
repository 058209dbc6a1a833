"""Setting up profiles: which plugin stands where, and what upstream finds only at this stage."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from deschedui.descheduler.plugins import DEFAULT_EVICTOR, PLUGINS, ExtensionPoint
from deschedui.descheduler.policy.entries import Entry
from deschedui.descheduler.policy.hints import misspelling
from deschedui.descheduler.policy.nodes import Path
from deschedui.descheduler.policy.outer import Plugins
from deschedui.descheduler.policy.report import Report
from deschedui.descheduler.selectors import SelectorError, StringSelector, parse_string_selector

Enabled = Mapping[ExtensionPoint, tuple[str, ...]]
_GO_POINTS: Mapping[ExtensionPoint, str] = {ExtensionPoint.PRE_EVICTION_FILTER: "preEvictionFilter"}


def enabled_with_defaults(plugins: Plugins) -> Enabled:
    """What is enabled at each extension point; DefaultEvictor comes first where it is not named."""
    enabled = {point: plugins.at(point.value).enabled for point in ExtensionPoint}
    for point in (ExtensionPoint.FILTER, ExtensionPoint.PRE_EVICTION_FILTER):
        if DEFAULT_EVICTOR not in enabled[point]:
            enabled[point] = (DEFAULT_EVICTOR, *enabled[point])
    return enabled


def read_node_selector(text: str | None, report: Report) -> StringSelector | None:
    """The policy's node selector, or None where there is none or it is refused."""
    if text is None:
        return None
    try:
        return parse_string_selector(text)
    except SelectorError as error:
        upstream = report.fails_building(str(error))
        report.error(("nodeSelector",), f"nodeSelector cannot be read: {error}", upstream=upstream)
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A profile on its way: what stands where, before it is known to be right."""

    name: str
    path: Path
    plugins: Plugins
    enabled: Enabled
    entries: Sequence[Entry]

    def entry(self, plugin: str) -> Entry | None:
        """The entry of a plugin that counts: the first."""
        return next((entry for entry in self.entries if entry.spec.name == plugin), None)

    def points(self, plugin: str) -> list[ExtensionPoint]:
        """Where a plugin is enabled."""
        return [point for point in ExtensionPoint if plugin in self.enabled[point]]

    def place(self, point: ExtensionPoint, plugin: str = "") -> Path:
        """Where an extension point's list stands, or one plugin in it."""
        path, written = (*self.path, "plugins", point.value, "enabled"), self.plugins.at(point.value).enabled
        return (*path, written.index(plugin)) if plugin in written else path

    def first_place(self, plugin: str) -> Path:
        """Where a plugin is enabled first."""
        return self.place(self.points(plugin)[0], plugin)

    def refusal(self, detail: str) -> str:
        """Upstream's text for a profile that it cannot set up, without the first prefix."""
        return f'unable to create "{self.name}" profile: {detail}'


def check_profile(draft: Draft, report: Report) -> None:
    """Report plugins at wrong extension points, plugins without an entry, and arguments that cannot be built."""
    for point in ExtensionPoint:
        _check_point(draft, point, report)
    for plugin in dict.fromkeys(plugin for point in ExtensionPoint for plugin in draft.enabled[point]):
        if plugin in PLUGINS:
            _check_plugin(draft, plugin, report)


def _check_point(draft: Draft, point: ExtensionPoint, report: Report) -> None:
    enabled = list(dict.fromkeys(draft.enabled[point]))
    for plugin in enabled:
        if not _stands(plugin, point):
            upstream = f"failed to create new descheduler: {_non_existing(draft, point, [plugin])}"
            hint = "" if plugin in PLUGINS else misspelling(plugin, PLUGINS)
            report.error(draft.place(point, plugin), _stranger(plugin, point), hint=hint, upstream=upstream)
    strange = [plugin for plugin in enabled if not (_stands(plugin, point) and PLUGINS[plugin].upstream)]
    if strange:
        report.fails_building(_non_existing(draft, point, strange))


def _stands(plugin: str, point: ExtensionPoint) -> bool:
    return plugin in PLUGINS and point in PLUGINS[plugin].points


def _stranger(plugin: str, point: ExtensionPoint) -> str:
    if plugin not in PLUGINS:
        return f"there is no plugin {plugin[:100]}" if plugin else "an empty name is no plugin"
    kinds = " or ".join(own.value for own in ExtensionPoint if own in PLUGINS[plugin].points)
    return f"{plugin} is a {kinds} plugin, not {point.value}"


def _non_existing(draft: Draft, point: ExtensionPoint, plugins: Sequence[str]) -> str:
    names = " ".join(f"{plugin}:{{}}" for plugin in sorted(plugins))
    where = _GO_POINTS.get(point, point.value)
    return draft.refusal(
        f'profile "{draft.name}" configures {where} extension point of non-existing plugins: map[{names}]'
    )


def _check_plugin(draft: Draft, plugin: str, report: Report) -> None:
    entry = draft.entry(plugin)
    if entry is None:
        if plugin != DEFAULT_EVICTOR:
            _refuse_missing(draft, plugin, report)
        return
    for place, text in _constructor_problems(entry):
        detail = f'unable to build {plugin} plugin: unable to initialize "{plugin}" plugin: {text}'
        report.error(place, text, upstream=report.fails_building(draft.refusal(detail)))


def _constructor_problems(entry: Entry) -> Iterator[tuple[Path, str]]:
    if entry.args is not None:
        for problem in entry.spec.constructor_problems(entry.args):
            yield (*entry.path, "args", problem.path), problem.text


def _refuse_missing(draft: Draft, plugin: str, report: Report) -> None:
    detail = f'unable to build {plugin} plugin: unable to find "{plugin}" plugin config'
    upstream = report.fails_building(draft.refusal(detail))
    report.error(
        draft.first_place(plugin),
        f"{plugin} is enabled but has no pluginConfig entry",
        hint=f"add - name: {plugin} under pluginConfig, even if it needs no arguments",
        upstream=upstream if PLUGINS[plugin].upstream else "",
    )
