"""The ASGI application: pages, API and doors."""

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "deschedui.settings")

application = get_asgi_application()
