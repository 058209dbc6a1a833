"""Settings of the product while its doors are measured (`DJANGO_SETTINGS_MODULE`): its own, and a bare view beside it.

No middleware: the doors stand in front of Django and pass none either, so the bare view is measured at its best.
"""

import os

os.environ.setdefault("DESCHEDUI_SECRET_KEY", "for-benchmarks-only-and-long-enough-not-to-be-warned-about")
os.environ.setdefault("DESCHEDUI_INSTALLATION_ID", "installation-of-the-benchmarks")

from deschedui.settings import *  # noqa: F403 - Django reads the names of this module

MIDDLEWARE = []
ROOT_URLCONF = "tests.bench.bare"
