"""Headers that every answer carries, whoever gives it: pages, fragments, files, redirects, errors, doors."""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]

# What a page may use of the browser: nothing but copying a line to the clipboard.
PERMISSIONS: Final = "clipboard-write=(self), " + ", ".join(
    f"{name}=()"
    for name in (
        "accelerometer", "autoplay", "camera", "clipboard-read", "display-capture", "encrypted-media", "fullscreen",
        "geolocation", "gyroscope", "hid", "idle-detection", "magnetometer", "microphone", "midi", "payment",
        "picture-in-picture", "publickey-credentials-get", "screen-wake-lock", "serial", "usb", "xr-spatial-tracking",
    )
)  # fmt: skip
# Django's own middleware sets the others (SECURE_…, X_FRAME_OPTIONS), and django-csp each page's policy.
ALWAYS: Final = {"Permissions-Policy": PERMISSIONS, "Cross-Origin-Resource-Policy": "same-origin"}
# For an answer that no page gives (a door's; one that Django gives before it knows the request): it may do nothing.
OTHERWISE: Final = {
    **ALWAYS,
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Opener-Policy": "same-origin",
}


class BrowserRights:
    """Sets what :data:`ALWAYS` holds; stands first, so that no other middleware's answer goes without."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        for name, value in ALWAYS.items():
            response.headers.setdefault(name, value)
        return response


def with_headers(application: Application) -> Application:
    """Give each answer of this ASGI application the headers that it does not have already."""
    otherwise = {**OTHERWISE, "Referrer-Policy": settings.SECURE_REFERRER_POLICY}
    added = [(name.lower().encode(), value.encode()) for name, value in otherwise.items()]

    async def serve(scope: Message, receive: Receive, send: Send) -> None:
        async def send_on(message: Message) -> None:
            if message["type"] == "http.response.start":
                there = {name.lower() for name, _ in message.get("headers", ())}
                missing = [pair for pair in added if pair[0] not in there]
                message = {**message, "headers": [*message.get("headers", ()), *missing]}
            await send(message)

        await application(scope, receive, send_on)

    return serve
