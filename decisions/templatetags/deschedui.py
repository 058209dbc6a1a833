"""Template tags and filters of deschedui's pages: durations, names, states, bars, masks."""

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

from django import template
from django.forms.utils import flatatt
from django.template import Context
from django.templatetags.static import static
from django.utils import timezone
from django.utils.html import escape, format_html
from django.utils.safestring import SafeString, mark_safe
from heroicons.templatetags.heroicons import heroicon_micro

from decisions.models import Decision
from decisions.queries import sentences
from decisions.queries.sentences import Look
from decisions.queries.statistics import Bar, Strip
from deschedui.masking import masked
from deschedui.text import web_address

register = template.Library()

# Not of the address that a person sees: what a poll says that its page shows, and the place within a list.
OF_A_POLL = ("before", "rows", "groups", "open", "after", "new", "bars", "title", "cycle")
ZONED = "%Y-%m-%d %H:%M:%S %Z"


@register.simple_tag
def icon(name: str, size: int = 16) -> str:
    """A Heroicon as inline SVG; decoration, the word stands beside it."""
    return heroicon_micro(name, size=size, aria_hidden="true", focusable="false", **{"class": "icon"})


@register.simple_tag
def state(look: Look) -> str:
    """A state: icon, word and colour."""
    return format_html('<span class="state {}">{}{}</span>', look.tone, icon(look.icon), look.word)


@register.simple_tag
def verdict(decision: Decision) -> str:
    """The verdict alone, as icon and word."""
    return state(sentences.VERDICTS[decision.verdict])


@register.simple_tag
def eviction(decision: Decision) -> str:
    """The eviction's own status, as icon and word; nothing where there is none."""
    return "" if decision.eviction == "none" else state(sentences.EVICTIONS[decision.eviction])


@register.simple_tag
def name(text: str, most: int = 44) -> str:
    """A name in a monospaced face that breaks in the middle: start and end tell pods apart.

    The whole name is in the page, so that it is copied, searched and read aloud; what is in the middle is
    hidden by the style alone.
    """
    if len(text) <= most:
        return format_html('<span class="name">{}</span>', text)
    tail = max(most // 3, 8)
    head = most - tail - 1
    return format_html(
        '<span class="name cut" title="{}">{}<span class="mid">{}</span>{}</span>',
        text, text[:head], text[head:-tail], text[-tail:],
    )  # fmt: skip


@register.filter
def dur(value: object) -> str:
    """Seconds, or a timedelta, as kubectl writes them."""
    seconds = value.total_seconds() if hasattr(value, "total_seconds") else value
    return sentences.duration(float(seconds)) if isinstance(seconds, int | float) else ""


@register.filter
def zoned(at: datetime | None) -> str:
    """Absolute, with the zone."""
    return timezone.localtime(at).strftime(ZONED) if at else ""


@register.simple_tag
def ago(at: datetime | None, suffix: str = "", *, focus: bool = True) -> str:
    """A relative time; absolute with its zone on hover and on focus."""
    if at is None:
        return "–"
    seconds = (timezone.now() - at).total_seconds()
    tab = {"tabindex": "0"} if focus else {}
    attributes = flatatt(
        {"datetime": at.isoformat(), "data-ago": suffix or True, "data-abs": zoned(at), **tab}
    )
    return format_html(
        "<time{}>{}{}</time>", attributes, sentences.duration(seconds), f" {suffix}" if suffix else ""
    )


@register.simple_tag
def until(at: datetime | None, *, focus: bool = True) -> str:
    """Time left; absolute with its zone on hover and on focus."""
    if at is None:
        return "–"
    tab = {"tabindex": "0"} if focus else {}
    attributes = flatatt({"datetime": at.isoformat(), "data-left": True, "data-abs": zoned(at), **tab})
    return format_html(
        "<time{}>{}</time>", attributes, sentences.duration(sentences.left(at, timezone.now()))
    )


@register.simple_tag
def left_bar(decision: Decision) -> str:
    """Time left as a shrinking bar; the number stands beside it."""
    now = timezone.now()
    share = sentences.share_left(decision, now)
    left = sentences.left(decision.expires_at, now)
    whole = left / share if share else 0
    attributes = flatatt({"data-whole": f"{whole:.0f}", "data-until": _iso(decision.expires_at)})
    return format_html(
        '<svg class="bar{}" viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true"{}>'
        '<rect class="rest" width="{}" height="4" rx="2"/></svg>',
        " short" if share < 0.2 else "", attributes, f"{share * 100:.1f}",
    )  # fmt: skip


def _iso(at: datetime | None) -> str:
    return at.isoformat() if at else ""


@register.filter
def mask(text: str) -> str:
    """A door's address without its token: such a path leaks (design.md section 6)."""
    return masked(str(text))


ADDRESS = re.compile(r"https?://[^\s<>\"'`]+", re.IGNORECASE)
END_OF_SENTENCE = ".,;:!?)]}’”"


@register.filter
def linked(text: str) -> SafeString:
    """A text from outside whose web addresses can be followed: a ticket in a reason, a page about a webhook's rule.

    The only place that makes a link of such text; :func:`deschedui.text.web_address` says which addresses may be one.
    The other site learns neither where the reader came from nor gets a handle on this window.
    """
    text, parts, at = str(text), [], 0
    for found in ADDRESS.finditer(text):
        address = web_address(found[0].rstrip(END_OF_SENTENCE))
        if address:
            parts += [escape(text[at : found.start()]), _link(address)]
            at = found.start() + len(address)
    return mark_safe("".join([*parts, escape(text[at:])]))  # noqa: S308 - made of escape and format_html alone


def _link(address: str) -> SafeString:
    return format_html('<a href="{0}" rel="noopener noreferrer" target="_blank">{0}</a>', address)


@register.filter
def get(mapping: Mapping[str, Any] | None, key: str) -> Any:
    """A value of a mapping by a variable key."""
    return (mapping or {}).get(key, "")


@register.filter
def plural(count: int, word: str) -> str:
    """``{{ 3|plural:"pod" }}`` is "3 pods"."""
    return sentences.plural(int(count or 0), word)


@register.filter
def ms(milliseconds: float) -> str:
    """A latency."""
    return sentences.ms(float(milliseconds or 0))


@register.filter
def seconds(value: object) -> str:
    """Seconds of a step: 12 ms, 1.4 s, 3m."""
    number = float(value) if isinstance(value, int | float) else 0.0
    return sentences.ms(number * 1000) if number < 60 else sentences.duration(number)


@register.filter
def fits(forecast: Mapping[str, Any]) -> int:
    """On how many nodes it would fit; the list of them may be cut."""
    return int(forecast.get("fits_count") or len(forecast.get("fits_on") or ()))


@register.filter
def cautions(forecast: Mapping[str, Any]) -> tuple[str, ...]:
    """Warnings of a forecast that nothing else of it says."""
    return sentences.cautions(forecast)


@register.filter
def who_wants(decision: Decision) -> str:
    """The plugin, or who asks at a door; nothing where the reason begins with that name already."""
    name = decision.plugin or decision.asker_name
    return "" if decision.reason.startswith(f"{name} ") else name


@register.filter
def beyond(text: str, word: str) -> str:
    """What a sentence says beyond the word that stands before it already: "denied by Ada" after "denied"."""
    again = text == word or text.startswith(f"{word} ")
    return text[len(word) :].strip() if again else text


@register.filter
def spaced(word: str) -> str:
    """``in_background`` as a person writes it."""
    return str(word).replace("_", " ")


@register.simple_tag(takes_context=True)
def address(context: Context, **changes: object) -> str:
    """This page's address with some of its parameters changed; an empty value takes one away."""
    query = context["request"].GET.copy()
    for key in OF_A_POLL:
        query.pop(key, None)
    for key, value in changes.items():
        query.pop(key, None)
        if value not in {"", None}:
            query[key] = str(value)
    return f"?{query.urlencode()}"


@register.simple_tag(takes_context=True)
def address_without(context: Context, key: str) -> str:
    """This page's address without one of its parameters."""
    return address(context, **{key: ""})


@register.inclusion_tag("_bars_strip.html", takes_context=True)
def bars(context: Context, strip: Strip) -> dict[str, Any]:
    """Decisions a day or an hour by verdict, as bars; a click narrows the time to one of them."""
    step = 16
    drawn = [
        {
            "x": number * step,
            "step": step,
            "width": step - 3,
            "words": bar.words(hourly=strip.hourly),
            "href": address(context, since=_utc(bar.start), until=_utc(bar.end)),
            "parts": list(_stacked(bar, strip.most)),
        }
        for number, bar in enumerate(strip.bars)
    ]
    form = "%a %H:%M" if strip.hourly else "%d %b"
    ends = [f"{timezone.localtime(bar.start):{form}}" for bar in strip.bars]
    return {
        "strip": strip,
        "drawn": drawn,
        "width": len(drawn) * step,
        "first": ends[0] if ends else "",
        "last": ends[-1] if ends else "",
    }


def _utc(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _stacked(bar: Bar, most: int) -> Iterator[dict[str, object]]:
    """From the ground up; what is there is seen, if only by a sliver."""
    y = 60.0
    for kind, count in bar.counts.items():
        if count:
            height = max(count / most * 56, 1.5)
            y -= height
            yield {"kind": kind, "y": f"{max(y, 0):.1f}", "height": f"{height:.1f}"}


@register.simple_tag(takes_context=True)
def only(context: Context, **wanted: object) -> str:
    """An address with these parameters alone (and the cluster)."""
    cluster = context["request"].GET.get("cluster", "")
    return "?" + urlencode({**({"cluster": cluster} if cluster else {}), **wanted})


# In the order in which they override each other.
STYLES = ("base", "shell", "controls", "tables", "answers", "narrow", "pages")


@register.simple_tag
def stylesheets() -> SafeString:
    """The page's own styles."""
    links = (
        format_html('<link rel="stylesheet" href="{}">', static(f"decisions/{each}.css")) for each in STYLES
    )
    return mark_safe("".join(links))  # noqa: S308 - made of format_html alone


@register.simple_tag
def modules() -> SafeString:
    """The page's own scripts."""
    names = ("time", "live", "selection", "keys", "undo")
    tags = (
        format_html('<script type="module" src="{}"></script>', static(f"decisions/{each}.js"))
        for each in names
    )
    return mark_safe("".join(tags))  # noqa: S308 - made of format_html alone
