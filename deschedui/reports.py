"""What an error report shows: on the debug page, and in the mail to ``ADMINS`` where somebody sets that.

Django hides what is named like a secret. Here a local variable called ``value`` may be a caller's token, so no
variable, form value, cookie or setting is shown at all, and the whole report is masked like a log line.
"""

from collections.abc import ItemsView
from types import FrameType
from typing import Any, Final

from django.http import HttpRequest, QueryDict
from django.views.debug import ExceptionReporter, SafeExceptionReporterFilter

from deschedui.logs import mask

HIDDEN: Final = "(not shown)"
# What a request may say of itself; everything else of it may be a credential.
_SHOWN_META: Final = frozenset({
    "CONTENT_LENGTH", "CONTENT_TYPE", "HTTP_ACCEPT", "HTTP_HOST", "HTTP_HX_REQUEST", "HTTP_USER_AGENT", "PATH_INFO",
    "REMOTE_ADDR", "REQUEST_METHOD", "SERVER_NAME", "SERVER_PORT",
})  # fmt: skip
_PLAIN: Final = (bool, int, float, type(None))


class Filter(SafeExceptionReporterFilter):
    """Names stay, values go; in DEBUG too."""

    def is_active(self, request: HttpRequest | None) -> bool:  # noqa: ARG002 - Django's signature
        """Always."""
        return True

    def get_safe_settings(self) -> dict[str, Any]:
        """None of them: several are made of URLs with passwords, whatever they are called."""
        return {}

    def get_safe_request_meta(self, request: HttpRequest) -> dict[str, Any]:
        """Method, path and the like; of the rest the names alone."""
        meta = getattr(request, "META", {})
        return {name: mask(str(value)) if name in _SHOWN_META else HIDDEN for name, value in meta.items()}

    def get_safe_cookies(self, request: HttpRequest) -> dict[str, Any]:
        """Their names."""
        return dict.fromkeys(getattr(request, "COOKIES", {}), HIDDEN)

    def get_post_parameters(self, request: HttpRequest | None) -> dict[str, Any]:
        """The names of a form's fields."""
        if request is None:
            return {}
        posted = QueryDict(mutable=True)
        for name in request.POST:
            posted[name] = HIDDEN
        return posted

    def get_traceback_frame_variables(
        self,
        request: HttpRequest | None,  # noqa: ARG002 - Django's signature
        tb_frame: FrameType,
    ) -> ItemsView[str, Any]:
        """Numbers as they are; of everything else the type."""
        return {name: _shown(value) for name, value in tb_frame.f_locals.items()}.items()


def _shown(value: object) -> object:
    return value if isinstance(value, _PLAIN) else f"{HIDDEN}: {type(value).__name__}"


class Reporter(ExceptionReporter):
    """A report whose every word went through the mask: messages of exceptions hold what was wrong, literally."""

    def get_traceback_data(self) -> dict[str, Any]:
        """As Django collects it, without the values of the query."""
        data: dict[str, Any] = super().get_traceback_data()
        if "request_GET_items" in data:
            data["request_GET_items"] = [(name, HIDDEN) for name, _ in data["request_GET_items"]]
        if "request_insecure_uri" in data:
            data["request_insecure_uri"] = str(data["request_insecure_uri"]).partition("?")[0]
        return data

    def get_traceback_html(self) -> Any:
        """The page."""
        return mask(super().get_traceback_html())

    def get_traceback_text(self) -> Any:
        """The mail."""
        return mask(super().get_traceback_text())
