"""The words of the pages: durations, states, failure modes, each with its own sentence and its own next step. Pure."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from decisions.models import Decision, Event, Eviction, Rule, Verdict

MINUTE: Final = 60
HOUR: Final = 3600
DAY: Final = 24 * HOUR
YEAR: Final = 365 * DAY


@dataclass(frozen=True)
class Look:
    """How a state looks: an icon (Heroicons), a word and a colour's name. Never the colour alone."""

    icon: str
    word: str
    tone: str


@dataclass(frozen=True)
class Advice:
    """What happened, and what to do about it."""

    sentence: str
    next_step: str


def duration(seconds: float) -> str:
    """As kubectl writes ages (``k8s.io/apimachinery/pkg/util/duration.HumanDuration``): 4m, 2m10s, 26h, 5d3h."""
    whole = max(int(seconds), 0)
    if whole < 2 * MINUTE:
        return f"{whole}s"
    if whole < 10 * MINUTE:
        return _two(whole, MINUTE, "m", 1, "s")
    if whole < 3 * HOUR:
        return f"{whole // MINUTE}m"
    if whole < 8 * HOUR:
        return _two(whole, HOUR, "h", MINUTE, "m")
    if whole < 2 * DAY:
        return f"{whole // HOUR}h"
    if whole < 8 * DAY:
        return _two(whole, DAY, "d", HOUR, "h")
    if whole < 2 * YEAR:
        return f"{whole // DAY}d"
    if whole < 8 * YEAR:
        return _two(whole, YEAR, "y", DAY, "d")
    return f"{whole // YEAR}y"


def _two(seconds: int, big: int, big_unit: str, small: int, small_unit: str) -> str:
    rest = seconds % big // small
    return f"{seconds // big}{big_unit}" + (f"{rest}{small_unit}" if rest else "")


def ordinal(number: int) -> str:
    """1st, 2nd, 3rd, 11th."""
    if number % 100 in {11, 12, 13}:
        return f"{number}th"
    return f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th') }"


def plural(count: int, one: str, many: str = "") -> str:
    """``1 pod``, ``7 pods``."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def listed(words: Sequence[str], *, last: str = "and", most: int = 5) -> str:
    """``a, b and c``; the tail of a long list is counted."""
    if len(words) > most:
        return f"{', '.join(words[:most])} {last} {len(words) - most} more"
    return f"{', '.join(words[:-1])} {last} {words[-1]}" if len(words) > 1 else "".join(words)


# --- states ------------------------------------------------------------------------------------------------

VERDICTS: Final[Mapping[str, Look]] = {
    Verdict.PENDING: Look("clock", "waiting", "waiting"),
    Verdict.ALLOWED: Look("check-circle", "allowed", "allowed"),
    Verdict.DENIED: Look("no-symbol", "denied", "denied"),
    Verdict.SKIPPED: Look("forward", "skipped", "quiet"),
    Verdict.EXPIRED: Look("bell-slash", "expired", "quiet"),
    Verdict.WITHDRAWN: Look("arrow-uturn-left", "withdrawn", "quiet"),
}

EVICTIONS: Final[Mapping[str, Look]] = {
    Eviction.NONE: Look("minus", "no eviction", "quiet"),
    Eviction.QUEUED: Look("queue-list", "queued", "waiting"),
    Eviction.DELEGATED: Look("megaphone", "told its caller", "waiting"),
    Eviction.EVICTING: Look("arrow-path", "evicting", "waiting"),
    Eviction.ACCEPTED: Look("arrow-right-start-on-rectangle", "accepted, terminating", "allowed"),
    Eviction.IN_BACKGROUND: Look("arrows-right-left", "moving in background", "waiting"),
    Eviction.BLOCKED: Look("shield-exclamation", "blocked", "waiting"),
    Eviction.EVICTED: Look("check-badge", "evicted", "allowed"),
    Eviction.GONE: Look("x-mark", "gone by itself", "quiet"),
    Eviction.FAILED: Look("exclamation-triangle", "failed", "failed"),
}

CYCLES: Final[Mapping[str, Look]] = {
    "running": Look("arrow-path", "running", "waiting"),
    "completed": Look("check-circle", "completed", "allowed"),
    "incomplete": Look("clock", "ended at its deadline", "waiting"),
    "failed": Look("exclamation-triangle", "failed", "failed"),
    "skipped": Look("forward", "skipped", "quiet"),
}

EVENTS: Final[Mapping[str, str]] = {
    Event.ASKED: "inbox-arrow-down",
    Event.EXTENDER_ANSWERED: "chat-bubble-left",
    Event.EXTENDER_FAILED: "exclamation-triangle",
    Event.NOMINATED_AGAIN: "arrow-path",
    Event.APPROVED: "check-circle",
    Event.DENIED: "no-symbol",
    Event.OVERRIDDEN: "shield-exclamation",
    Event.UNDONE: "arrow-uturn-left",
    Event.TAKEN_BACK: "arrow-uturn-left",
    Event.BACK_TO_PENDING: "arrow-uturn-left",
    Event.SKIPPED: "forward",
    Event.TOLD: "megaphone",
    Event.QUEUED: "queue-list",
    Event.TRIED: "paper-airplane",
    Event.BLOCKED: "shield-exclamation",
    Event.ACCEPTED: "check",
    Event.IN_BACKGROUND: "arrows-right-left",
    Event.EVICTED: "check-badge",
    Event.GONE: "x-mark",
    Event.FAILED: "exclamation-triangle",
    Event.REQUEUED: "queue-list",
    Event.HELD: "pause-circle",
    Event.RELEASED: "play",
    Event.STILL_THERE: "clock",
    Event.EXPIRED: "bell-slash",
    Event.WITHDRAWN: "arrow-uturn-left",
    Event.REPLACEMENT: "sparkles",
    Event.LEASE_LOST: "exclamation-triangle",
}


def look(decision: Decision) -> Look:
    """The one state that a reader wants to know: the verdict, or what has become of the eviction since."""
    if decision.verdict == Verdict.ALLOWED and decision.eviction != Eviction.NONE:
        return EVICTIONS[decision.eviction]
    return VERDICTS[decision.verdict]


def question(decision: Decision) -> str:
    """The head of a decision, as one sentence."""
    where = f" from {decision.node}" if decision.node else ""
    return f"Evict {decision.pod_name}{where}?"


def outcome(decision: Decision) -> str:
    """What was decided and what came of it, as one sentence."""
    who = decision.decided_by_name or "deschedui"
    if decision.verdict == Verdict.PENDING:
        return "Waits for a decision."
    if decision.verdict == Verdict.ALLOWED:
        verb = "Overridden" if decision.override else "Approved"
        return f"{verb} by {who}; {eviction_words(decision)}."
    if decision.verdict == Verdict.DENIED:
        return f"Denied by {_the(decision, who)}" + (
            f": {decision.decision_reason}" if decision.decision_reason else "."
        )
    if decision.verdict == Verdict.SKIPPED:
        return "Left alone this cycle (failPolicy Ignore); asked again in the next one."
    if decision.verdict == Verdict.EXPIRED:
        return "Nobody answered in time." if decision.rule == Rule.TIME else "Not carried out in time."
    return "Withdrawn; the timeline says why."


_BY_FAILURE: Final[Mapping[str, str]] = {"malformed": "the rule that a malformed answer is never a yes"}


def _the(decision: Decision, who: str) -> str:
    if decision.rule != Rule.EXTENDER:
        return who
    if decision.failure_mode:  # it did not say no: nobody at its end is to be asked why
        return _BY_FAILURE.get(decision.extender_decided_by, "failPolicy")
    return "the extender"


def eviction_words(decision: Decision) -> str:
    """What has become of an allowed eviction so far."""
    told = decision.asker_name
    waits = f"waits for decision {decision.waits_for_id}" if decision.waits_for_id else "not handed over yet"
    words = {
        Eviction.NONE: waits,
        Eviction.QUEUED: f"held: {decision.held}" if decision.held else "queued to be evicted",
        Eviction.DELEGATED: f"{told} has heard the yes and may already have acted",
        Eviction.EVICTING: "the eviction is being sent",
        Eviction.ACCEPTED: "the API server accepted the eviction, the pod is terminating",
        Eviction.IN_BACKGROUND: "the pod is being moved in the background",
        Eviction.BLOCKED: f"blocked by PDB {decision.pdb}" if decision.pdb else "blocked",
        Eviction.EVICTED: "evicted" + (" (unconfirmed)" if decision.unconfirmed else ""),
        Eviction.GONE: "the pod went by itself",
        Eviction.FAILED: "the eviction failed",
    }
    return words[Eviction(decision.eviction)]


# --- extenders ---------------------------------------------------------------------------------------------


def ms(milliseconds: float) -> str:
    """A latency: 12 ms, 1.4 s."""
    return f"{milliseconds:.0f} ms" if milliseconds < 1000 else f"{milliseconds / 1000:.1f} s"


def _after(out: Mapping[str, Any]) -> str:
    return ms(float(out.get("latency_ms") or 0))


_AFTER: Final = re.compile(r" after [0-9.]+ s;")
_HANDSHAKE: Final = re.compile(r'TLS with "(?P<name>[^"]*)" failed: (?P<why>.*)', re.DOTALL)
_STATUS: Final = re.compile(r"(?P<status>HTTP \d+[^:]*): (?P<body>.*)", re.DOTALL)


def _timeout(out: Mapping[str, Any]) -> Advice:
    detail = _AFTER.sub(";", str(out.get("detail") or ""))
    limit = f" ({detail})" if detail else ""
    return Advice(
        f"The extender had not answered after {_after(out)}{limit}.",
        "Look at its load, or raise httpTimeout; the next cycle asks again.",
    )


def _connection(out: Mapping[str, Any]) -> Advice:
    return Advice(
        f"No connection to the extender: {out.get('detail') or 'refused'}.",
        "Check that it runs and listens on this address, and that a NetworkPolicy lets the worker through.",
    )


def _dns(out: Mapping[str, Any]) -> Advice:
    detail = str(out.get("detail") or f"does not resolve: {out.get('url', '')}")
    said = detail if "does not resolve" in detail else f"does not resolve: {detail}"
    return Advice(
        f"The extender's name {said}.",
        "Check the host in urlPrefix and the cluster's DNS; a Service needs its namespace in the name.",
    )


def _tls(out: Mapping[str, Any]) -> Advice:
    if handshake := _HANDSHAKE.match(str(out.get("detail") or "")):
        return Advice(
            f"The TLS handshake with the extender, as “{handshake['name']}”, failed: {handshake['why']}.",
            "Check that this port speaks TLS at all, and which TLS versions and client certificates it takes; "
            "else correct the scheme of urlPrefix.",
        )
    return Advice(
        f"TLS with the extender failed: {out.get('detail') or 'the handshake was refused'}.",
        "Compare the certificate's names, issuer and dates with tlsConfig: caCertFile and serverName.",
    )


def _http_status(out: Mapping[str, Any]) -> Advice:
    status = out.get("http_status") or 0
    said = str(out.get("detail") or f"HTTP {status}")
    step = "Read the extender's log at this time."
    if status in {401, 403}:
        step = "Check the Authorization header in httpHeaders."
    elif status == 404:
        step = "Check urlPrefix and decisionVerb: the extender does not know this path."
    elif 300 <= status < 400:
        step = "Put the final address into urlPrefix: redirects are not followed."
    if beginning := _STATUS.match(said):
        said = f"{beginning['status']}; the body begins “{beginning['body']}”."
    return Advice(f"The extender answered with {said}", step)


def _extender_error(out: Mapping[str, Any]) -> Advice:
    return Advice(
        f"The extender reported an error of its own: {out.get('reason') or out.get('detail')}.",
        "It is up and speaks the protocol; the text is its own, look there.",
    )


def _invalid_response(out: Mapping[str, Any]) -> Advice:
    return Advice(
        f"The extender's answer cannot be understood: {out.get('detail') or 'not one JSON object'}.",
        'It must answer 200 with {"allow": true or false, "reason": text}. A malformed answer is never a yes.',
    )


def _circuit_open(_out: Mapping[str, Any]) -> Advice:
    return Advice(
        "The extender was not asked about this pod: too many calls before it had failed in a row.",
        "See its recent answers under Extenders; the next cycle tries it again.",
    )


def _config_error(out: Mapping[str, Any]) -> Advice:
    return Advice(
        f"The extender's configuration cannot be used: {out.get('detail') or 'see the cycle'}.",
        "No pod is nominated at all until it is corrected; each cycle reads the policy again.",
    )


FAILURES: Final = {
    "timeout": _timeout,
    "connection": _connection,
    "dns": _dns,
    "tls": _tls,
    "http_status": _http_status,
    "extender_error": _extender_error,
    "invalid_response": _invalid_response,
    "circuit_open": _circuit_open,
    "config_error": _config_error,
}

_MEANT: Final[Mapping[tuple[str, str], str]] = {
    ("allow", "ignorable"): "It is ignorable, so the missing answer counts as a yes; a human still decides.",
    ("allow", "failPolicy"): "failPolicy Allow takes the missing answer as a yes; a human still decides.",
    ("deny", "failPolicy"): "failPolicy Deny makes it a denial, which a human may override.",
    (
        "deny",
        "malformed",
    ): "A malformed answer is never a yes, whatever failPolicy says; a human may override.",
    ("skip", "failPolicy"): "failPolicy Ignore leaves the pod alone this cycle.",
}


def extender_advice(out: Mapping[str, Any]) -> Advice:
    """What one extender's outcome (``ExtenderOutcome.as_dict``) says, with the next step where it failed."""
    mode = str(out.get("failure_mode") or "")
    if mode in FAILURES:
        found = FAILURES[mode](out)
        return Advice(found.sentence.replace("..", "."), found.next_step)
    said = str(out.get("reason") or "")
    verb = "allows" if out.get("effect") == "allow" else "denies"
    return Advice(f"The extender {verb} it{f': {said}' if said else ', without a reason'}", "")


def what_it_meant(out: Mapping[str, Any]) -> str:
    """Which rule made a yes or a no out of a failed call; empty for a real answer."""
    return _MEANT.get((str(out.get("effect")), str(out.get("decided_by"))), "")


def extender_short(decision: Decision) -> str:
    """What the extender said or how it failed, in a few words for a row; empty where none was asked."""
    if not decision.extender_effect:
        return ""
    if decision.failure_mode:
        mode = decision.failure_mode.replace("_", " ")
        return f"extender {mode}, {decision.extender_effect} by {decision.extender_decided_by}"
    return "extender allows" if decision.extender_effect == "allow" else "extender denies"


# --- evictions ---------------------------------------------------------------------------------------------

_EVICTION_STEPS: Final[Mapping[str, str]] = {
    "created": "Nothing to do: the pod is terminating and is watched until its UID is gone.",
    "not_found": "Nothing to do: the pod was gone before we came.",
    "replaced": "Nothing to do here: the new pod of this name needs a decision of its own.",
    "conflict": "The pod changed while it was being evicted; it is read again and tried once more.",
    "pdb": "It is tried again by itself until the approval expires. Bring more replicas up, or take it back.",
    "pdb_not_processed": "The PDB is new to its controller; it is tried again when the API server says.",
    "pdb_unusable": "Repair the PDB (its disruptedPods or its allowance); it is tried again by itself.",
    "several_pdbs": "The Eviction API refuses a pod that several PDBs cover: remove all but one, then try again.",
    "lease": "It goes on by itself once the Lease can be written; while something is missing, a bar above says what.",
    "throttled": "The API server is busy; the whole cluster's carry-out slows down and goes on by itself.",
    "in_background": "Whoever moves the pod in the background ends it; this is watched.",
    "webhook_blocked": "An admission webhook asks to wait; it is tried again from every 30 s.",
    "webhook_denied": "An admission webhook refuses: talk to its owner, then try again by hand.",
    "webhook_unavailable": "An admission webhook cannot be called; up to five tries, then by hand.",
    "namespace_terminating": "Nothing to do: the namespace goes away and its pods with it.",
    "rbac": "Give deschedui's worker the missing right (deploy/ has the ClusterRole), then try again by hand.",
    "unauthorized": "Renew the cluster's credentials; what is queued goes on as soon as they work.",
    "no_answer": "The API server did not answer; the pod is looked up before anything is sent again.",
    "other": "The API server's text is kept in the timeline; the pod is looked up before the next try.",
}


def eviction_advice(decision: Decision) -> Advice:
    """What the API server said last about the eviction, and what to do about it."""
    if decision.held:
        return Advice(f"Held: {decision.held}.", "Say “go on” to release it, or take the approval back.")
    # Accepted: the outcome says so already, and there is nothing to do.
    if decision.eviction in {Eviction.EVICTED, Eviction.ACCEPTED} and not decision.unconfirmed:
        return Advice("", "")
    if decision.eviction == Eviction.EVICTED or not (decision.cause or decision.message):
        return Advice("", "")
    # What it waited for while it was queued: withdrawn, denied or being sent it waits for no Lease.
    if decision.cause == "lease" and decision.eviction != Eviction.QUEUED:
        return Advice("", "")
    text = decision.message or decision.cause.replace("_", " ")
    if decision.eviction == Eviction.BLOCKED and decision.pdb:  # whom it is blocked by is said beside it
        text = text.removeprefix(f"blocked by PDB {decision.pdb}: ")
    return Advice(text[:1].upper() + text[1:], _EVICTION_STEPS.get(decision.cause, ""))


# --- the forecast ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Chip:
    """A fact of the forecast in a few words. ``bad`` ones make an approval ask once more."""

    text: str
    bad: bool = False
    title: str = ""
    in_head: bool = False
    """The head of a workload's group says it already."""


def chips(decision: Decision) -> tuple[Chip, ...]:
    """The forecast of a row, what speaks against it first."""
    forecast = decision.forecast or {}
    found = [*_room(forecast), *pdb_chips(forecast), *_replicas(decision, forecast), *_other(forecast)]
    return tuple(sorted(found, key=lambda chip: not chip.bad))


def _room(forecast: Mapping[str, Any]) -> list[Chip]:
    fits = forecast.get("fits_on")
    if fits is None:
        return []
    if not fits:
        return [Chip("no room", bad=True, title="No other node would take it now.")]
    nodes = listed([str(node) for node in fits])
    if forecast.get("fit") == "crowded":
        return [Chip("fits only if others stay", bad=True, title=nodes)]
    return [Chip(f"fits on {plural(int(forecast.get('fits_count') or len(fits)), 'node')}", title=nodes)]


def _blocks(pdb: Mapping[str, Any]) -> bool:
    return bool(pdb.get("blocks", not pdb.get("disruptions_allowed")))


def _applying(forecast: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """The PDBs that count for this pod; they do not apply to pods that are Pending, Succeeded or Failed."""
    return forecast.get("pdbs") or () if forecast.get("pdb_applies", True) else ()


def pdb_chips(forecast: Mapping[str, Any]) -> list[Chip]:
    """What each PDB allows now."""
    return [
        Chip(
            f"PDB {pdb.get('name')} allows {pdb.get('disruptions_allowed')}",
            bad=_blocks(pdb),
            title=f"{pdb.get('current_healthy')} healthy, {pdb.get('desired_healthy')} needed",
            in_head=not _blocks(pdb),
        )
        for pdb in _applying(forecast)
    ]


def _leaves(forecast: Mapping[str, Any]) -> str:
    """ "leaves 1 of 3 Ready", where that is less than what is usual while a pod is replaced."""
    ready, desired = forecast.get("ready"), forecast.get("desired")
    if ready is None or not desired or forecast.get("only_replica"):
        return ""
    after = int(forecast.get("ready_after", max(ready - 1, 0)))
    return f"leaves {after} of {desired} Ready" if ready < desired or after <= 0 else ""


def _replicas(decision: Decision, forecast: Mapping[str, Any]) -> list[Chip]:
    found = []
    if forecast.get("only_replica"):
        found.append(Chip("only replica", bad=True))
    elif leaves := _leaves(forecast):
        found.append(Chip(leaves, bad=True))
    if forecast.get("same_name") or decision.owner_kind == "StatefulSet":
        found.append(Chip("StatefulSet, same name", title="It will come back under the same name."))
    if decision.owner_kind == "" and decision.verified:
        found.append(Chip("no owner", bad=True, title="Nothing will bring it back."))
    return found


def tied_to(forecast: Mapping[str, Any]) -> tuple[str, ...]:
    """Volumes that tie the pod to a node."""
    volumes = forecast.get("bound_volumes") or ()
    return tuple(str(each.get("claim") or each.get("volume")) for each in volumes if each.get("node"))


def cautions(forecast: Mapping[str, Any]) -> tuple[str, ...]:
    """Warnings of the forecast that nothing else says already."""
    found = (str(text) for text in forecast.get("warnings") or ())
    return tuple(
        text for text in found if not (forecast.get("only_replica") and text.startswith("single replica"))
    )


_SEVERAL_PDBS: Final = re.compile(r"(?P<number>\d+) PodDisruptionBudgets match ")


def _other(forecast: Mapping[str, Any]) -> list[Chip]:
    tied = [Chip("volume tied to a node", bad=True)] if tied_to(forecast) else []
    return tied + [Chip(_short(text), bad=True, title=text) for text in cautions(forecast)]


def _short(warning: str) -> str:
    """A warning in the few words of a chip; the sentence is its title, and whole on the decision's page."""
    if several := _SEVERAL_PDBS.match(warning):
        return f"{several['number']} PDBs cover it: refused"
    return _cut(warning, 48)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def objections(decision: Decision) -> tuple[str, ...]:
    """What speaks against an approval, in words; an approval asks once more where there are any."""
    forecast = decision.forecast or {}
    found = _no_room(forecast)
    found += [
        f"PDB {pdb.get('name')} allows no disruption now, so the eviction would be blocked"
        for pdb in _applying(forecast)
        if _blocks(pdb)
    ]
    if forecast.get("only_replica"):
        found.append("it is the only replica: nothing serves until its replacement is Ready")
    elif leaves := _leaves(forecast):
        found.append(f"it {leaves}")
    if decision.owner_kind == "" and decision.verified:
        found.append("nothing owns this pod, so nothing will bring it back")
    if tied := tied_to(forecast):
        found.append(f"{listed(tied)} {'ties' if len(tied) == 1 else 'tie'} it to its node")
    return (*found, *cautions(forecast))


def _no_room(forecast: Mapping[str, Any]) -> list[str]:
    if forecast.get("fits_on") is not None and not forecast["fits_on"]:
        return ["no other node has room for its replacement"]
    if forecast.get("fit") == "crowded":
        return ["its replacement fits only if others that are asked for stay"]
    return []


# --- time --------------------------------------------------------------------------------------------------


def left(until: datetime | None, now: datetime) -> float:
    """Seconds until then, never below zero."""
    return max((until - now).total_seconds(), 0.0) if until else 0.0


def share_left(decision: Decision, now: datetime) -> float:
    """How much of the time to answer is left, 0 to 1, for the shrinking bar."""
    if decision.expires_at is None:
        return 0.0
    whole = (
        decision.cluster.settings.pending_seconds
        if decision.verdict == Verdict.PENDING
        else (decision.expires_at - (decision.decided_at or decision.created_at)).total_seconds()
    )
    return min(left(decision.expires_at, now) / whole, 1.0) if whole > 0 else 0.0


def undo_until(decision: Decision) -> datetime | None:
    """Until when a human's approval can be undone with one key; None where that never was."""
    if decision.verdict != Verdict.ALLOWED or decision.rule != Rule.HUMAN or decision.decided_at is None:
        return None
    if decision.override or decision.eviction not in {Eviction.NONE, Eviction.QUEUED}:
        return None
    return decision.decided_at + timedelta(seconds=decision.cluster.settings.undo_seconds)
