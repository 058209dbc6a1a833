"""The ASGI application: doors in front, then Django's pages and API."""

import os
from typing import cast

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "deschedui.settings")

django_application = get_asgi_application()

from decisions.doors.asgi import Application, with_doors  # noqa: E402 - the registry of applications must be ready
from decisions.web.headers import with_headers  # noqa: E402 - the same

application = with_headers(with_doors(cast("Application", django_application)))
