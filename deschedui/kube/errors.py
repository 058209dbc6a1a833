"""What can go wrong between us and an API server.

::

    KubeError
    ├── ConfigError            the kubeconfig, context or service account cannot be used
    ├── InvalidName            a name that no object can have; nothing was sent (also a ValueError)
    ├── Stopped                we were asked to stop between two calls
    ├── BudgetExhausted  (r)   our own pace left no room before the deadline; nothing was sent
    ├── Unreachable      (r)   no answer: name, connection, TLS
    │   └── TimedOut     (r)   no complete answer in time; what was sent may have been carried out
    ├── InvalidAnswer    (r)   an answer that is not what was asked for, or too large
    └── ApiError               the API server answered, and not with success
        ├── Unauthorized       401: the credentials were refused
        ├── Forbidden          403: names the missing verb and resource where RBAC says so
        ├── NotFound           404
        ├── Conflict           409
        ├── Expired      (r)   410: a list must start again
        ├── Throttled    (r)   429, with the seconds to wait where they were given
        └── ServerError  (r)   5xx

``(r)``: ``retryable``, the same call may succeed later without anybody changing anything. For calls that
change state that says something about the cause and permits nothing: those are looked up before they are
repeated.
"""

# The names say what happened, as Kubernetes' own reasons do; the tree above says that they are errors.
# ruff: noqa: N818

from __future__ import annotations

from typing import ClassVar


class KubeError(Exception):
    """Base of every error that leaves this package. Messages are bounded and hold no credentials."""

    retryable: ClassVar[bool] = False


class ConfigError(KubeError):
    """The connection cannot be set up: says which file or context, and what to do."""


class InvalidName(KubeError, ValueError):
    """A namespace or name that no object can have, such as one with a slash. Nothing was sent."""


class Stopped(KubeError):
    """The caller's ``should_stop`` said so; what was read so far is dropped."""


class BudgetExhausted(KubeError):
    """The cluster's budget had no room before the deadline. Nothing was sent."""

    retryable = True


class Unreachable(KubeError):
    """No answer came back: the name does not resolve, the connection or the TLS handshake failed."""

    retryable = True


class TimedOut(Unreachable):
    """No complete answer within the total time of the call."""


class InvalidAnswer(KubeError):
    """The answer is not what a Kubernetes API server sends, or larger than the bound."""

    retryable = True


class ApiError(KubeError):
    """The API server answered with an error.

    Args:
        message: one sentence for people.
        status: the HTTP status.
        reason: the machine-readable reason of the ``Status`` (``NotFound``), or an empty text.
    """

    def __init__(self, message: str, *, status: int, reason: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason


class Unauthorized(ApiError):
    """401: the cluster's credentials were refused."""


class Forbidden(ApiError):
    """403. ``verb`` and ``resource`` are set where RBAC refused (``create``, ``pods/eviction``)."""

    def __init__(
        self, message: str, *, status: int = 403, reason: str = "", verb: str = "", resource: str = ""
    ) -> None:
        super().__init__(message, status=status, reason=reason)
        self.verb = verb
        self.resource = resource


class NotFound(ApiError):
    """404: no such object (or no such API)."""


class Conflict(ApiError):
    """409: the object is another one than was meant, or changed meanwhile."""


class Expired(ApiError):
    """410: the list's position is too old."""

    retryable = True


class Throttled(ApiError):
    """429. ``retry_after`` in seconds, ``None`` where the server did not say."""

    retryable = True

    def __init__(
        self, message: str, *, status: int = 429, reason: str = "", retry_after: float | None = None
    ) -> None:
        super().__init__(message, status=status, reason=reason)
        self.retry_after = retry_after


class ServerError(ApiError):
    """5xx: the API server, or what it depends on, has trouble."""

    retryable = True
