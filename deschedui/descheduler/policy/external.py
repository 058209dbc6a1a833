"""Where ExternalDecision stands. A gate that is off because of a slip of the pen is an error, never silence."""

from collections.abc import Iterator

from deschedui.descheduler.plugins import EXTERNAL_DECISION, PLUGINS, ExtensionPoint
from deschedui.descheduler.policy.building import Draft
from deschedui.descheduler.policy.hints import nearest
from deschedui.descheduler.policy.nodes import Kind, Node, Path
from deschedui.descheduler.policy.outer import READ_POINTS
from deschedui.descheduler.policy.report import Report

_GATE = "to gate the nominations of other plugins enable it under plugins.preevictionfilter.enabled"


def check_placed(draft: Draft, report: Report) -> None:
    """Report an ExternalDecision that is configured and enabled nowhere, and what its place means."""
    entry, points = draft.entry(EXTERNAL_DECISION), draft.points(EXTERNAL_DECISION)
    if entry and not points:
        message = f"{EXTERNAL_DECISION} is configured and enabled nowhere: nobody would be asked"
        report.error((*entry.path, "name"), message, hint=_GATE)
    if ExtensionPoint.DESCHEDULE in points:
        _warn_deschedule(draft, report)


def check_mentions(root: Node, report: Report) -> None:
    """Report every place that names ExternalDecision and that nobody reads, such as a misspelt key."""
    for path in _mentions(root, ()):
        if _is_unread(path):
            hint = _point_hint(path)
            report.error(
                path, f"{EXTERNAL_DECISION} is named here and has no effect: {_reason(path)}", hint=hint
            )


def _warn_deschedule(draft: Draft, report: Report) -> None:
    strategies = (*draft.enabled[ExtensionPoint.DESCHEDULE], *draft.enabled[ExtensionPoint.BALANCE])
    gated = ", ".join(dict.fromkeys(p for p in strategies if p != EXTERNAL_DECISION)) or "other plugins"
    report.warn(
        draft.place(ExtensionPoint.DESCHEDULE, EXTERNAL_DECISION),
        f"{EXTERNAL_DECISION} under deschedule nominates every evictable pod; "
        f"to gate {gated} enable it under preevictionfilter",
    )


def _mentions(node: Node, path: Path) -> Iterator[Path]:
    """Paths of every text that is ``ExternalDecision`` and nothing else."""
    if node.kind is Kind.STRING and node.text == EXTERNAL_DECISION:
        yield path
    for index, item in enumerate(node.items):
        yield from _mentions(item, (*path, index))
    for pair in node.members:
        yield from _mentions(pair.value, (*path, pair.key))


def _is_unread(path: Path) -> bool:
    match path:
        case ("profiles", int(), "name") | ("profiles", int(), "pluginConfig", int(), "name"):
            return False
        case ("profiles", int(), "plugins", str() as point, "enabled", int()):
            return point not in READ_POINTS
        case ("profiles", int(), "plugins", str() as point, "disabled", int()):
            return False
        case ("profiles", int(), "pluginConfig", int(), "args", *_):
            return False
    return "enabled" in path or "plugins" in path or "pluginConfig" in path or path[-1] == "name"


def _reason(path: Path) -> str:
    keys = [part for part in path if isinstance(part, str)]
    return f"{'.'.join(keys[1:]) or keys[0]} is not read" if keys else "it is not read"


def _point_hint(path: Path) -> str:
    match path:
        case ("profiles", int(), "plugins", str() as point, *_):
            near = nearest(point, [point.value for point in PLUGINS[EXTERNAL_DECISION].points])
            return f"did you mean {near}?" if near and near != point else _GATE
    return _GATE
