"""Metrics providers: judged as upstream judges them. No plugin of today reads usage from them."""

import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import urlsplit

from deschedui.descheduler.policy.nodes import Path
from deschedui.descheduler.policy.outer import DeschedulerPolicy, MetricsProvider, Prometheus
from deschedui.descheduler.policy.report import Report

_PATH: Final[Path] = ("metricsProviders",)
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_USER: Final = re.compile(r"(?<=//)[^/]*@")
"""User and password of a URL: upstream prints them, we do not."""
Finding = tuple[Path, str]


def check_metrics(document: DeschedulerPolicy, report: Report) -> None:
    """Report what upstream refuses; it prints these texts without a prefix."""
    for path, text in _problems(document):
        report.error(path, text, upstream=text)
        report.validation.append(text)


def _problems(document: DeschedulerPolicy) -> Iterator[Finding]:
    providers = document.metrics_providers
    yield from _repeated(providers)
    collector = document.metrics_collector
    if collector and collector.enabled and any(p.source == "KubernetesMetrics" for p in providers):
        text = "it is not allowed to combine metrics provider when metrics collector is enabled"
        yield ("metricsCollector", "enabled"), text
    for index, provider in enumerate(providers):
        if provider.source == "Prometheus":
            path = (*_PATH, index, "prometheus")
            yield from ((path, text) for text in _prometheus_problems(provider.prometheus))
            return


def _repeated(providers: tuple[MetricsProvider, ...]) -> Iterator[Finding]:
    seen: set[str] = set()
    for index, provider in enumerate(providers):
        if provider.source in seen:
            text = (
                f'metric provider "{provider.source}" is already configured, '
                "each source can be configured only once"
            )
            yield (*_PATH, index, "source"), text
        seen.add(provider.source)


def _prometheus_problems(prometheus: Prometheus | None) -> Iterator[str]:
    if prometheus is None:
        yield "prometheus configuration is required when prometheus source is enabled"
        return
    if not prometheus.url:
        yield "prometheus URL is required when prometheus is enabled"
    elif problem := _url_problem(prometheus.url):
        shown = _USER.sub("***@", prometheus.url)
        yield f'error parsing prometheus URL: parse "{shown}": {problem}'
    if prometheus.auth_token is None:
        return
    reference = prometheus.auth_token.secret_reference
    if reference is None:
        yield "prometheus authToken secret is expected to be set when authToken field is"
    elif not (reference.name and reference.namespace):
        yield "prometheus authToken secret reference does not set both namespace and name"


def _url_problem(url: str) -> str:
    """What Go's parser says against a URL, as far as it can be told apart, or ''."""
    if _CONTROL.search(url):
        return "net/url: invalid control character in URL"
    if url.startswith(":"):
        return "missing protocol scheme"
    try:
        netloc = urlsplit(url).netloc.rpartition("@")[2]
    except ValueError:
        return "invalid URL"
    host, colon, port = netloc.rpartition(":")
    if colon and "]" not in port and not re.fullmatch(r"[0-9]*", port):
        return f'invalid port ":{port}" after host'
    return 'invalid character " " in host name' if " " in (host or netloc) else ""
