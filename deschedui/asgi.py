"""The ASGI application: doors in front, then Django's pages and API."""

import os
import resource
import threading
from typing import cast

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "deschedui.settings")

django_application = get_asgi_application()

from decisions.checks import refuse_start  # noqa: E402 - the registry of applications must be ready
from decisions.doors.asgi import Application, learn_callers, with_doors  # noqa: E402 - as above
from deschedui.logs import mask_uncaught  # noqa: E402 - as above

mask_uncaught()
refuse_start("web")
from decisions.web.headers import with_headers  # noqa: E402 - the same


def _raise_file_limit() -> None:
    """As many connections as this process may have: a caller that is not accepted takes that for permission."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


_raise_file_limit()
threading.Thread(target=learn_callers, name="learn-callers", daemon=True).start()
application = with_headers(with_doors(cast("Application", django_application)))
