"""Settings of the tests: the product's own, with a cheap password hasher and files of this run only.

``DESCHEDUI_TEST_DATABASE_URL`` runs the same tests on PostgreSQL.
"""

import os
import tempfile
from pathlib import Path

_FOLDER = Path(tempfile.mkdtemp(prefix="deschedui-tests-"))
os.environ["DESCHEDUI_DEBUG"] = "0"
os.environ["DESCHEDUI_SECRET_KEY"] = "for-tests-only-and-long-enough-not-to-be-warned-about"
os.environ["DESCHEDUI_ALLOWED_HOSTS"] = "localhost,127.0.0.1,testserver"
os.environ["DESCHEDUI_DATABASE_URL"] = os.environ.get(
    "DESCHEDUI_TEST_DATABASE_URL", f"sqlite:///{_FOLDER / 'deschedui.sqlite3'}"
)
os.environ["DESCHEDUI_BROKER_URL"] = f"filesystem://{_FOLDER / 'broker'}"
os.environ["DESCHEDUI_INSTALLATION_ID"] = "installation-of-the-tests"
os.environ["DESCHEDUI_PUBLIC_URL"] = "http://testserver"

from deschedui import settings
from deschedui.settings import *

# Between tests the record may be emptied.
DATABASE = settings.DATABASES["default"]
DATABASE["ENGINE"] = DATABASE["ENGINE"].replace("django.db.backends", "tests.databases")
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
STORAGES = {"staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}}
