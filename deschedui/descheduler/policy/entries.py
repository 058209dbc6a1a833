"""The entries of ``pluginConfig``: arguments read strictly, judged, and given their defaults."""

from collections.abc import Sequence
from dataclasses import dataclass

from deschedui.descheduler.plugins import PLUGINS, PluginSpec
from deschedui.descheduler.plugins.arg_types import Args
from deschedui.descheduler.policy.decode import Decoder, Fault, Findings, Place, Stray
from deschedui.descheduler.policy.hints import misspelling, stray_key
from deschedui.descheduler.policy.nodes import Kind, Path, path_parts
from deschedui.descheduler.policy.outer import DeschedulerProfile, PluginConfig
from deschedui.descheduler.policy.report import Report, aggregate, decoding_text
from deschedui.descheduler.policy.version import head_problem


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of ``pluginConfig`` whose plugin exists. ``args`` is None where they could not be read."""

    spec: PluginSpec
    path: Path
    args: Args | None


def read_entries(
    profile: DeschedulerProfile, path: Path, report: Report, *, is_json: bool
) -> tuple[Entry, ...]:
    """Read and judge every entry of a profile, whether its plugin is enabled or not."""
    entries = []
    for index, config in enumerate(profile.plugin_config):
        entry_path = (*path, index)
        if config.name not in PLUGINS:
            _refuse_unknown(profile.name, config.name, entry_path, report)
            continue
        spec = PLUGINS[config.name]
        args = _read_args(spec, config, (*entry_path, "args"), report, is_json=is_json)
        entry = Entry(spec, entry_path, args)
        _judge(profile.name, entry, report)
        entries.append(entry)
    return tuple(entries)


def not_registered(profile: str, plugin: str) -> str:
    """Upstream's refusal of an entry for a plugin that it does not have."""
    return f"in profile {profile}: plugin {plugin} in pluginConfig not registered"


def _refuse_unknown(profile: str, plugin: str, path: Path, report: Report) -> None:
    text = not_registered(profile, plugin)
    report.validation.append(text)
    message = (
        f"there is no plugin {plugin[:100]}" if plugin else "name is missing: whose arguments are these?"
    )
    report.error((*path, "name"), message, hint=misspelling(plugin, PLUGINS), upstream=text)


def _read_args(
    spec: PluginSpec, config: PluginConfig, path: Path, report: Report, *, is_json: bool
) -> Args | None:
    if config.args is None:
        return spec.args()
    if problem := head_problem(config.args):
        key, text = problem
        found = "a list" if config.args.kind is Kind.ARRAY else "a value"
        message = f"{key} must be text" if key else f"args must be a mapping, not {found}"
        report.error((*path, key) if key else path, message, upstream=_decoding(spec, report, text))
        return None
    decoder = Decoder(in_key_order=not is_json, base=path, ignored_keys=frozenset({"apiVersion", "kind"}))
    args: Args = decoder.struct(config.args, spec.args, Place(path))
    return args if _report(spec, decoder.findings, report, is_json=is_json) else None


def _report(spec: PluginSpec, findings: Findings, report: Report, *, is_json: bool) -> bool:
    """Report what the decoder found in arguments; say whether they can be used."""
    strict = [stray for stray in findings.strays if is_json or not stray.repeated]
    if is_json:
        strict.sort(key=lambda stray: (stray.line, stray.column))
    for fault in findings.faults:
        report.error(
            fault.path, fault.message, hint=fault.hint, upstream=_alone(spec, report, fault.upstream)
        )
    for stray in strict:
        upstream = _alone(spec, report, f"strict decoding error: {_strict_item(stray)}")
        report.error(stray.path, _stray_message(stray, spec), hint=_stray_hint(stray), upstream=upstream)
    for stray in findings.strays:
        if stray not in strict:
            warn_repeated(stray, report)
    _note_upstream(spec, findings.faults, strict, report)
    return not findings.faults and not strict


def _note_upstream(
    spec: PluginSpec, faults: Sequence[Fault], strict: Sequence[Stray], report: Report
) -> None:
    """A type error wins; else all strict errors come in one text."""
    if first := next((fault.upstream for fault in faults if fault.upstream), ""):
        _decoding(spec, report, first)
    elif strict:
        _decoding(spec, report, f"strict decoding error: {', '.join(map(_strict_item, strict))}")


def _decoding(spec: PluginSpec, report: Report, detail: str) -> str:
    return report.fails_decoding(detail) if spec.upstream else ""


def _alone(spec: PluginSpec, report: Report, detail: str) -> str:
    """What upstream would print if this were all."""
    return decoding_text(report.filename, detail) if spec.upstream and detail else ""


def _strict_item(stray: Stray) -> str:
    return f'{"duplicate" if stray.repeated else "unknown"} field "{stray.go_path}"'


def _stray_message(stray: Stray, spec: PluginSpec) -> str:
    if stray.repeated:
        return f"{stray.key[:100]} occurs twice in the arguments of {spec.name}"
    return f"{spec.name} has no argument {stray.key[:100]}"


def _stray_hint(stray: Stray) -> str:
    return "remove one of them" if stray.repeated else stray_key(stray.key, stray.owner)


def warn_repeated(stray: Stray, report: Report) -> None:
    """A key that occurs again later: YAML's reader takes the last and says nothing."""
    message = f"{stray.key[:100]} occurs twice: what stands in line {stray.line} is ignored, the last counts"
    report.warn(stray.path, message)


def _judge(profile: str, entry: Entry, report: Report) -> None:
    spec = entry.spec
    if not spec.upstream:
        _warn_foreign(profile, entry, report)
    if entry.args is None:
        return
    problems = list(spec.problems(entry.args))
    for problem in problems:
        upstream = f"in profile {profile}: {problem.text}" if spec.upstream else ""
        report.error(_below_args(entry, problem.path), problem.text, hint=problem.hint, upstream=upstream)
    if problems and spec.upstream:
        report.validation.append(f"in profile {profile}: {aggregate(p.text for p in problems)}")
    for warning in spec.warnings(entry.args):
        report.warn(_below_args(entry, warning.path), warning.text)


def _warn_foreign(profile: str, entry: Entry, report: Report) -> None:
    text = not_registered(profile, entry.spec.name)
    report.validation.append(text)
    message = (
        f"the upstream descheduler refuses this file: plugin {entry.spec.name} in pluginConfig not registered"
    )
    report.warn((*entry.path, "name"), message, upstream=text)


def _below_args(entry: Entry, path: str) -> Path:
    return (*entry.path, "args", *path_parts(path))
