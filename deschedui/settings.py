"""Django settings, derived from :mod:`deschedui.config`. Nothing here reads the environment by itself."""

import logging
import os
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import structlog
from csp.constants import NONE, SELF

from deschedui import config, refusals
from deschedui.logs import hide, indent_traceback, mask_event, mask_line, show_event

try:
    ENV = config.load(os.environ)
    INSTALLATION_ID = ENV.installation_id or config.kept_installation_id()
except config.ConfigurationError as error:
    sys.exit(f"deschedui cannot start; set these environment variables right:\n{error}")

hide(refusals.secrets_of(ENV))
BASE_DIR = config.ROOT
SECRET_KEY = ENV.secret_key or "only-for-debug"
DEBUG = ENV.debug
ALLOWED_HOSTS = list(ENV.allowed_hosts)
CSRF_TRUSTED_ORIGINS = list(ENV.trusted_origins)

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    "axes",
    "csp",
    "django_htmx",
    "django_filters",
    "heroicons",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "decisions",
]

MIDDLEWARE = [
    "decisions.web.hiding.HideCredentials",
    # These set headers and stand first: static files, redirects and errors of the others have them too.
    "decisions.web.headers.BrowserRights",
    "csp.middleware.CSPMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.middleware.gzip.GZipMiddleware",
    "decisions.web.middleware.LoginForFragments",
    "decisions.web.middleware.Sessions",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "decisions.web.middleware.PlainAddresses",
    "decisions.web.middleware.PersonsTimeZone",
    "axes.middleware.AxesMiddleware",
]

ROOT_URLCONF = "deschedui.urls"
ASGI_APPLICATION = "deschedui.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "decisions.web.rendering.VisibleTemplates",
        "NAME": "django",  # Under which Django REST framework looks for it.
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "decisions.web.context.shell",
            ],
            "builtins": ["heroicons.templatetags.heroicons", "decisions.templatetags.deschedui"],
        },
    }
]


# A process that is stopped, or cut off, in the middle of a transaction holds its locks, and with them every other
# decision, until the server ends that transaction. None of ours has anything to do meanwhile but its next statement.
_IMPATIENT = "-c idle_in_transaction_session_timeout=5s -c lock_timeout=10s"


def _database(url: str) -> dict[str, Any]:
    if url.startswith("sqlite:///"):
        path = Path(url.removeprefix("sqlite:///"))
        path.parent.mkdir(parents=True, exist_ok=True)
        # Without these, writers that meet fail at once ("database is locked") instead of waiting their turn.
        return {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": str(path),
            "OPTIONS": {
                "transaction_mode": "IMMEDIATE",
                "timeout": 20,
                "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
            },
            "CONN_MAX_AGE": None,
            "TEST": {"NAME": str(path.with_name(f"test-{os.getpid()}.sqlite3"))},
        }
    parts = urlsplit(url)
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": unquote(parts.path.lstrip("/")),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": unquote(parts.hostname or ""),
        "PORT": str(parts.port or ""),
        "OPTIONS": {
            # More than the doors' threads: while all of those wait for an API server that does not answer, pages and
            # the probe have theirs. A web that is not ready is one whose callers evict.
            "pool": {"min_size": 1, "max_size": 20, "timeout": 5},
            "connect_timeout": 5,
            "options": _IMPATIENT,
            # A host that is gone without a word: its connections end then, not after the quarter of an hour of TCP.
            "tcp_user_timeout": 10_000,
        },
    }


DATABASES = {"default": _database(ENV.database_url)}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
AUTHENTICATION_BACKENDS = [
    "axes.backends.AxesStandaloneBackend",
    "django.contrib.auth.backends.ModelBackend",
]
# Sign-ins: so many failures for a name from one address, four times as many for a name from anywhere, within the time.
AXES_HANDLER = "decisions.web.throttle.Handler"
AXES_LOCKOUT_PARAMETERS = ["username", ["username", "ip_address"]]
AXES_FAILURE_LIMIT = 5
AXES_COOLOFF_TIME = timedelta(minutes=15)
AXES_RESET_COOL_OFF_ON_FAILURE_DURING_LOCKOUT = (
    False  # Or whoever goes on trying keeps the owner out for ever.
)
AXES_RESET_ON_SUCCESS = True
AXES_CLIENT_IP_CALLABLE = "decisions.web.throttle.address_of"
AXES_LOCKOUT_CALLABLE = "decisions.web.throttle.refused"
AXES_DISABLE_ACCESS_LOG = True  # The record has the sign-ins.
# axes keeps what was posted when an attempt failed: these are fields of the sign-in and of the password's page.
AXES_SENSITIVE_PARAMETERS = ["username", "ip_address", "present", "new", "again"]
AXES_ENABLE_ADMIN = AXES_VERBOSE = False

LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "inbox"
LOGOUT_REDIRECT_URL = "login"

LANGUAGE_CODE = "en-us"
USE_I18N = False
USE_TZ = True
TIME_ZONE = ENV.time_zone

STATIC_URL = "static/"
STATIC_ROOT = Path(ENV.static_root)
STORAGES = {"staticfiles": {"BACKEND": "whitenoise.storage.CompressedStaticFilesStorage"}}
if not STATIC_ROOT.exists():
    STATIC_ROOT.mkdir(parents=True)
# A checkout in which nobody collected them serves the sources; those must not change while it runs.
WHITENOISE_USE_FINDERS = not any(STATIC_ROOT.iterdir())

# Served by HTTPS, cookies are Secure and bear the prefix with which a browser takes them from this very host by HTTPS
# only. The demo on loopback has no HTTPS, and a browser refuses the prefix without Secure: there they go without both.
_COOKIES = "__Host-deschedui" if ENV.served_by_https else "deschedui"
SESSION_COOKIE_NAME, CSRF_COOKIE_NAME = f"{_COOKIES}-session", f"{_COOKIES}-csrf"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = ENV.served_by_https
SESSION_COOKIE_HTTPONLY = CSRF_COOKIE_HTTPONLY = True  # Our scripts take the token from the page.
# Lax: a link in a chat must find the reader signed in. Nothing changes by GET.
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_PATH = CSRF_COOKIE_PATH = "/"
SESSION_COOKIE_DOMAIN = CSRF_COOKIE_DOMAIN = None
SESSION_ENGINE = "decisions.services.sessions"
SESSION_COOKIE_AGE = int(
    ENV.session_hours * 3600
)  # The server ends it earlier: see decisions.services.sessions.
MESSAGE_STORAGE = "django.contrib.messages.storage.session.SessionStorage"  # No third cookie.
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if ENV.behind_https else None
SECURE_SSL_REDIRECT = ENV.behind_https
# Probes come from the kubelet, past the proxy. Doors stand in front of Django and redirect nobody.
SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^livez$"]
SECURE_HSTS_SECONDS = ENV.hsts_seconds if ENV.behind_https else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = ENV.behind_https
# Preloading is a promise for a whole registered domain, made in a list outside; one of its hosts does not make it.
SILENCED_SYSTEM_CHECKS = ["security.W021"]
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF],
        "style-src": [SELF],
        "img-src": [SELF],
        "connect-src": [SELF],
        "form-action": [SELF],
        "base-uri": [NONE],
        "frame-ancestors": [NONE],
    }
}

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "decisions.api.authentication.TokenAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["decisions.api.permissions.ScopedPermission"],
    "DEFAULT_RENDERER_CLASSES": ["decisions.api.renderers.VisibleJSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "DEFAULT_PAGINATION_CLASS": "decisions.api.pagination.CursorPages",
    "EXCEPTION_HANDLER": "decisions.api.problems.handler",
    "PAGE_SIZE": 50,
}
SPECTACULAR_SETTINGS = {
    "TITLE": "deschedui",
    "VERSION": "v1",
    "OAS_VERSION": "3.1.0",
    "DESCRIPTION": "Decide which Kubernetes pods get evicted: read, approve, deny, override.",
    "SERVE_INCLUDE_SCHEMA": False,
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "REDOC_DIST": "SIDECAR",
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "decisions.api.schema.describe_refusals",
    ],
}

# Doors read their own bodies up to this many bytes; pages and API keep Django's smaller default.
DOOR_MAX_BODY_BYTES = 4 * 1024 * 1024

logging.captureWarnings(capture=True)
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "filters": {"mask": {"()": "deschedui.logs.MaskDoorTokens"}},
    "formatters": {
        "line": {
            "()": structlog.stdlib.ProcessorFormatter,
            "foreign_pre_chain": [
                structlog.stdlib.add_log_level,
                structlog.processors.TimeStamper(fmt="iso"),
            ],
            "processors": [
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.format_exc_info,
                mask_event,
                show_event,
                *(
                    [
                        indent_traceback,
                        structlog.dev.ConsoleRenderer(
                            colors=False, exception_formatter=structlog.dev.plain_traceback
                        ),
                    ]
                    if DEBUG
                    else [structlog.processors.JSONRenderer()]
                ),
                mask_line,
            ],
        },
        "record": {"format": "%(message)s"},
    },
    "handlers": {
        "console": {"class": "logging.StreamHandler", "formatter": "line", "filters": ["mask"]},
        # services.record_lines: finished lines of JSON. Not sys.stdout, which Celery turns into a logger's.
        "record": {
            "class": "logging.StreamHandler",
            "formatter": "record",
            "filters": ["mask"],
            "stream": "ext://sys.__stdout__",
        },
        # Mails nobody unless ADMINS is set; its traceback is DEFAULT_EXCEPTION_REPORTER's.
        "mail_admins": {
            "class": "django.utils.log.AdminEmailHandler",
            "level": "ERROR",
            "formatter": "line",
            "filters": ["mask"],
        },
    },
    "root": {"handlers": ["console"], "level": ENV.log_level},
    "loggers": {
        "deschedui.record": {"handlers": ["record"], "level": "INFO", "propagate": False},
        "django": {"handlers": ["mail_admins"], "level": "INFO"},
        # uvicorn gives these handlers of its own, which know no masking; ours write instead.
        **{
            name: {"handlers": [], "propagate": True}
            for name in ("uvicorn", "uvicorn.error", "uvicorn.access")
        },
        # Each tick would write three lines to say that nothing was due.
        **{
            name: {"level": "DEBUG" if ENV.log_level == "DEBUG" else "WARNING"}
            for name in ("axes", "celery.app.trace", "celery.worker.strategy", "celery.beat")
        },
    },
}
DEFAULT_EXCEPTION_REPORTER = "deschedui.reports.Reporter"
DEFAULT_EXCEPTION_REPORTER_FILTER = "deschedui.reports.Filter"
