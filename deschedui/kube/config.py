"""Which API server, and with which credentials: the official client's loaders behind one small object.

The loaders read the in-cluster service account, a kubeconfig's context, token files and exec plugins. What
they leave to us is done here: token files are read again while they rotate, an exec plugin that failed is an
error instead of an anonymous call, and no message repeats what a kubeconfig holds.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import urllib3
import yaml
from kubernetes.client import Configuration
from kubernetes.client.rest import RESTClientObject
from kubernetes.config import ConfigException
from kubernetes.config.incluster_config import InClusterConfigLoader
from kubernetes.config.kube_config import KUBE_CONFIG_DEFAULT_LOCATION, KubeConfigLoader, KubeConfigMerger

from deschedui.kube.errors import ConfigError
from deschedui.kube.text import sentence

SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
TOKEN_FILE_SECONDS: Final = 60.0
_MAX_TOKEN: Final = 64 * 1024
_POOL_SIZE: Final = 32

# The loaders carry no types.
_merger: Any = KubeConfigMerger
_kubeconfig_loader: Any = KubeConfigLoader
_service_account_loader: Any = InClusterConfigLoader


@dataclass(frozen=True, slots=True)
class ClusterConnection:
    """How a cluster is reached.

    Args:
        name: ours, for messages.
        in_cluster: use the service account of the pod that we run in.
        kubeconfig: path of a kubeconfig (several as in ``KUBECONFIG``); empty: the usual places.
        context: of the kubeconfig; empty: its current one.
    """

    name: str
    in_cluster: bool = False
    kubeconfig: str = ""
    context: str = ""

    def __str__(self) -> str:
        if self.in_cluster:
            return f"cluster {self.name} (in-cluster service account)"
        kubeconfig, context = self.kubeconfig or "default", self.context or "current"
        return f"cluster {self.name} (kubeconfig {kubeconfig}, context {context})"


@dataclass(slots=True)
class Access:
    """A loaded connection: where to send, through which pool, with which credentials.

    Not thread-safe by itself; :class:`deschedui.kube.wire.Wire` holds a lock around it.
    """

    host: str
    pool: urllib3.PoolManager
    configuration: Configuration = field(repr=False)
    token_file: Path | None = None
    clock: Callable[[], float] = time.monotonic
    _token: str = field(default="", repr=False)
    _read_at: float = field(default=float("-inf"), repr=False)

    def authorization(self) -> str:
        """The ``Authorization`` header as it is valid now, or an empty text for client certificates.

        Raises:
            ConfigError: a token cannot be read, or cannot be sent. The message never contains it.
        """
        if self.token_file is not None:
            return self._from_file(self.token_file)
        try:
            header = self.configuration.auth_settings().get("BearerToken", {}).get("value") or ""
        except (OSError, ValueError, ConfigException) as error:
            raise ConfigError(f"the credentials cannot be refreshed: {type(error).__name__}") from None
        return _sendable(str(header))

    def _from_file(self, path: Path) -> str:
        if self.clock() - self._read_at >= TOKEN_FILE_SECONDS:
            self._token, self._read_at = _read_token(path), self.clock()
        return _sendable(f"Bearer {self._token}")


def load(
    connection: ClusterConnection,
    *,
    environ: Mapping[str, str] = os.environ,
    service_account: Path = SERVICE_ACCOUNT,
    clock: Callable[[], float] = time.monotonic,
) -> Access:
    """Load a connection. Runs exec plugins, so it may take as long as they do; opens no connection.

    Raises:
        ConfigError: says which file or context, and why.
    """
    configuration = Configuration()
    configuration.retries = False
    configuration.connection_pool_maxsize = _POOL_SIZE
    # Of the environment none: it is everybody's in a container. One in a kubeconfig (proxy-url) is set below.
    configuration.proxy = configuration.no_proxy = None
    try:
        if connection.in_cluster:
            token_file: Path | None = _load_service_account(configuration, environ, service_account)
        else:
            token_file = _load_kubeconfig(configuration, connection, environ)
        pool = RESTClientObject(configuration).pool_manager
    except ConfigError:
        raise
    except Exception as error:  # noqa: BLE001 - the loaders raise whatever a malformed file provokes
        raise ConfigError(f"{connection} cannot be loaded: {_explain(error)}") from None
    return Access(
        host=str(configuration.host).rstrip("/"),
        pool=pool,
        configuration=configuration,
        token_file=token_file,
        clock=clock,
    )


def _load_service_account(configuration: Configuration, environ: Mapping[str, str], folder: Path) -> Path:
    token = folder / "token"
    _service_account_loader(
        token_filename=str(token), cert_filename=str(folder / "ca.crt"), environ=environ
    ).load_and_set(configuration)
    return token


def _load_kubeconfig(
    configuration: Configuration, connection: ClusterConnection, environ: Mapping[str, str]
) -> Path | None:
    paths = connection.kubeconfig or environ.get("KUBECONFIG", "") or str(KUBE_CONFIG_DEFAULT_LOCATION)
    merged = _merger(paths).config
    if merged is None:
        raise ConfigError(f"{connection}: no such kubeconfig: {sentence(paths, 300)}")
    loader = _kubeconfig_loader(
        config_dict=merged, active_context=connection.context or None, config_base_path=None
    )
    loader.load_and_set(configuration)
    user, folder = _user_of(merged.value, loader.current_context)
    _check_exec(connection, user, configuration)
    return folder / str(user["tokenFile"]) if user.get("tokenFile") else None


def _user_of(merged: Mapping[str, Any], context: Mapping[str, Any]) -> tuple[Mapping[str, Any], Path]:
    """The context's user as the file has it, and the folder that its relative paths start from."""
    name = (context.get("context") or {}).get("user")
    for entry in merged.get("users") or ():
        if entry.value.get("name") == name:
            return entry.value.get("user") or {}, Path(entry.path).absolute().parent
    return {}, Path()


def _check_exec(connection: ClusterConnection, user: Mapping[str, Any], configuration: Configuration) -> None:
    """The loader logs the failure of an exec plugin and goes on without credentials; we do not."""
    if "exec" in user and not configuration.api_key and not configuration.cert_file:
        command = sentence(str((user["exec"] or {}).get("command", "")), 200)
        raise ConfigError(
            f"{connection}: the exec plugin {command!r} gave no credentials; run it by hand to see why"
        )


def _read_token(path: Path) -> str:
    try:
        with path.open(encoding="utf-8") as file:
            token = file.read(_MAX_TOKEN).strip()
    except (OSError, ValueError) as error:
        raise ConfigError(f"the token file {path} cannot be read: {type(error).__name__}") from None
    if not token:
        raise ConfigError(f"the token file {path} is empty")
    return token


def _sendable(header: str) -> str:
    """Refuse what the HTTP library would quote in its own error: that message would show the token."""
    header = header.strip()
    if not header.isascii() or not header.isprintable():
        raise ConfigError("the token contains line breaks or other characters that no header can carry")
    return header


def _explain(error: Exception) -> str:
    if isinstance(error, yaml.YAMLError):
        mark = getattr(error, "problem_mark", None)
        return f"not YAML (line {mark.line + 1})" if mark else "not YAML"
    if isinstance(error, ConfigException):
        # What follows " in " is the loader's name of the place: the whole entry, with its token.
        return sentence(str(error).split(" in ", maxsplit=1)[0], 300)
    if isinstance(error, OSError):
        return sentence(f"{error.strerror}: {error.filename}", 300)
    return f"malformed ({type(error).__name__})"
