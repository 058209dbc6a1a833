"""Policy texts with one thing changed."""

from deschedui.descheduler.policy import LoadResult, load

POD_LIFE_TIME = "{name: PodLifeTime, args: {maxPodLifeTimeSeconds: 3600}}"
EXTENDER = "{urlPrefix: 'https://ext.example', decisionVerb: evict, ignorable: false, httpTimeout: 5s}"
HEAD = "apiVersion: descheduler/v1alpha2\nkind: DeschedulerPolicy\n"


def policy_text(
    *,
    head: str = HEAD,
    top: str = "",
    name: str = "main",
    entries: tuple[str, ...] = (POD_LIFE_TIME,),
    plugins: str = "{deschedule: {enabled: [PodLifeTime]}}",
) -> str:
    """A policy of one profile. ``entries`` are pluginConfig entries and ``plugins`` is a value, in flow style."""
    config = "".join(f"  - {entry}\n" for entry in entries)
    profile = f"- name: {name}\n  pluginConfig:\n{config}  plugins: {plugins}\n"
    return f"{head}{top}profiles:\n{profile}"


def with_args(args: str, *, plugin: str = "PodLifeTime") -> LoadResult:
    """What loading says about the arguments of one plugin."""
    entry = f"{{name: {plugin}, args: {args}}}"
    return load(policy_text(entries=(entry,) if plugin == "PodLifeTime" else (entry, POD_LIFE_TIME)))


def gated(args: str, *, plugins: str = "") -> LoadResult:
    """What loading says about the arguments of an ExternalDecision that gates PodLifeTime."""
    enabled = "{deschedule: {enabled: [PodLifeTime]}, preevictionfilter: {enabled: [ExternalDecision]}}"
    entries = (f"{{name: ExternalDecision, args: {args}}}", POD_LIFE_TIME)
    return load(policy_text(entries=entries, plugins=plugins or enabled))


def messages(result: LoadResult) -> str:
    """All errors, one a line, as a page would list them."""
    return "\n".join(map(str, result.errors))


def warnings(result: LoadResult) -> str:
    """All warnings, one a line, as a page would list them."""
    return "\n".join(map(str, result.warnings))
