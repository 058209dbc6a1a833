"""The policy document around the plugins' arguments, field by field; names of structs are upstream's."""

from typing import Final

import msgspec
from msgspec import field

from deschedui.descheduler.plugins.arg_types import Args, Int64, Uint
from deschedui.descheduler.policy.nodes import Node

READ_POINTS: Final = ("deschedule", "balance", "filter", "preevictionfilter")
"""Keys of ``plugins`` that have an effect."""
UNREAD_POINTS: Final = ("presort", "sort")
"""Keys of ``plugins`` that upstream knows and never uses."""


class PluginSet(Args, frozen=True):
    """Plugins of one extension point; ``disabled`` is read and never used."""

    enabled: tuple[str, ...] = ()
    disabled: tuple[str, ...] = ()


class Plugins(Args, frozen=True):
    """Extension points, all lower case."""

    presort: PluginSet = PluginSet()
    sort: PluginSet = PluginSet()
    deschedule: PluginSet = PluginSet()
    balance: PluginSet = PluginSet()
    filter: PluginSet = PluginSet()
    preevictionfilter: PluginSet = PluginSet()

    def at(self, point: str) -> PluginSet:
        """The set of one extension point."""
        plugin_set: PluginSet = getattr(self, point)
        return plugin_set


class PluginConfig(Args, frozen=True):
    """One entry of ``pluginConfig``; its arguments are read when the plugin is known."""

    name: str = ""
    args: Node | None = None


class DeschedulerProfile(Args, frozen=True):
    """One profile as written."""

    name: str = ""
    plugin_config: tuple[PluginConfig, ...] = ()
    plugins: Plugins = Plugins()


class MetricsCollector(Args, frozen=True):
    """The deprecated switch for the metrics server."""

    enabled: bool = False


class SecretReference(Args, frozen=True):
    """Where a token is kept."""

    namespace: str = ""
    name: str = ""


class AuthToken(Args, frozen=True):
    """How to sign in to Prometheus."""

    secret_reference: SecretReference | None = None


class Prometheus(Args, frozen=True):
    """A Prometheus to ask."""

    url: str = ""
    auth_token: AuthToken | None = None


class MetricsProvider(Args, frozen=True):
    """A source of usage."""

    source: str = ""
    prometheus: Prometheus | None = None


class DeschedulerPolicy(Args, frozen=True):
    """A policy as written."""

    profiles: tuple[DeschedulerProfile, ...] = ()
    node_selector: str | None = None
    max_no_of_pods_to_evict_per_node: Uint | None = None
    max_no_of_pods_to_evict_per_namespace: Uint | None = None
    max_no_of_pods_to_evict_total: Uint | None = None
    eviction_failure_event_notification: bool = False
    metrics_collector: MetricsCollector | None = None
    metrics_providers: tuple[MetricsProvider, ...] = ()
    grace_period_seconds: Int64 | None = None
    api_version: str = field(default="", name="apiVersion")
    kind: str = ""


_GO_SPELLINGS: Final = {
    "pluginConfig": "PluginConfigs",
    "presort": "PreSort",
    "preevictionfilter": "PreEvictionFilter",
    "apiVersion": "apiVersion",
    "kind": "kind",
}


def as_written(_struct: type[msgspec.Struct], key: str) -> str:
    """The keys of a policy with an apiVersion."""
    return key


def as_in_go(_struct: type[msgspec.Struct], key: str) -> str:
    """The keys of a policy without an apiVersion: upstream then reads Go's own names of the fields."""
    return _GO_SPELLINGS.get(key, key[:1].upper() + key[1:])
