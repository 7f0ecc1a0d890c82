"""Django's settings. What a deployment may change comes from `marketplace.env`; the rest is fixed here."""

from typing import Any

import dj_database_url
import django_stubs_ext

from marketplace.env import PREFIX, ROOT, SettingError, read_env, secret_key

django_stubs_ext.monkeypatch()

ENV = read_env()
BASE_DIR = ROOT
VAR_DIR = ENV.var
SECRET_KEY = secret_key(ENV)
DEBUG = ENV.debug
ALLOWED_HOSTS = ENV.allowed_hosts.split(",")
PUBLIC_URL = ENV.public_url.rstrip("/")
CSRF_TRUSTED_ORIGINS = [PUBLIC_URL]

INSTALLED_APPS = [
    "daphne",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.humanize",
    "django.contrib.messages",
    "django.contrib.sessions",
    "django.contrib.staticfiles",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "channels",
    "accounts",
    "blobs",
    "billing",
    "scheduler",
    "worker_protocol",
    "marketplace",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "marketplace.static_files.StaticFilesMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "marketplace.pages.middleware.ContentSecurityPolicyMiddleware",
    "marketplace.pages.middleware.ViewerTimeZoneMiddleware",
    "common.http.DomainErrorMiddleware",
]

ROOT_URLCONF = "marketplace.urls"
ASGI_APPLICATION = "marketplace.asgi.application"

TEMPLATES: list[dict[str, Any]] = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [ROOT / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
            "builtins": ["marketplace.pages.filters"],
        },
    }
]


def _database() -> dict[str, Any]:
    if not ENV.database_url:
        VAR_DIR.mkdir(parents=True, exist_ok=True)
        url = f"sqlite:///{VAR_DIR / 'nightshift.sqlite3'}"
    else:
        url = ENV.database_url
    try:
        config: dict[str, Any] = dict(dj_database_url.parse(url))
    except (dj_database_url.ParseError, dj_database_url.UnknownSchemeError):
        raise SettingError(
            f"{PREFIX}DATABASE_URL: not a database address. "
            "Set it like postgres://user:password@host:5432/name, or unset it for SQLite."
        ) from None
    # Opening one costs as much as several queries; a thread that serves again finds its own.
    config |= {"CONN_MAX_AGE": 600, "CONN_HEALTH_CHECKS": True}
    if config["ENGINE"].endswith("sqlite3"):
        config["OPTIONS"] = {
            # Writers queue at BEGIN instead of failing half-way when a read lock cannot be upgraded.
            "transaction_mode": "IMMEDIATE",
            "timeout": 20,
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
        }
    return config


DATABASES = {"default": _database()}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# Reads of a channel wait 5 s for a message, which the client's own time limit must leave room for.
REDIS_SOCKET_TIMEOUT_S = 15

CHANNEL_LAYERS: dict[str, dict[str, Any]] = {
    "default": {
        "BACKEND": "channels_redis.core.RedisChannelLayer",
        "CONFIG": {
            "hosts": [{"address": ENV.redis_url, "socket_timeout": REDIS_SOCKET_TIMEOUT_S}],
            "capacity": 1_000,
        },
    }
    if ENV.redis_url
    else {"BACKEND": "channels.layers.InMemoryChannelLayer", "CONFIG": {"capacity": 1_000}}
}
CACHES: dict[str, dict[str, Any]] = {
    "default": {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": ENV.redis_url}
    if ENV.redis_url
    else {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}
}

# Without a broker, tasks run in the process that sends them.
CELERY_BROKER_URL = ENV.celery_broker_url or "memory://localhost/"
CELERY_TASK_ALWAYS_EAGER = not ENV.celery_broker_url
CELERY_TASK_EAGER_PROPAGATES = True
CELERY_TASK_DEFAULT_QUEUE = ENV.celery_queue
# A task is done when it has ended well; one whose process was killed (out of memory, a power cut) is run again.
# That ends: a task whose question the scheduler has given up returns at once.
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
# A worker takes a task when it can begin it, so that none waits behind a long one while another worker is free.
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
# torch keeps a little of each model it exports; a process that is replaced now and then gives that back.
CELERY_WORKER_MAX_TASKS_PER_CHILD = 1_000
CELERY_WORKER_HIJACK_ROOT_LOGGER = False  # LOGGING below says how to log, here as everywhere
CELERY_TASK_IGNORE_RESULT = True
CELERY_TIMEZONE = "UTC"

AUTH_USER_MODEL = "accounts.User"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.NumericPasswordValidator"},
]
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "home"
LOGOUT_REDIRECT_URL = "home"

_HTTPS = PUBLIC_URL.startswith("https://")
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = _HTTPS
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if _HTTPS else None
SECURE_REFERRER_POLICY = "same-origin"

EMAIL_BACKEND = {
    "console": "django.core.mail.backends.console.EmailBackend",
    "file": "django.core.mail.backends.filebased.EmailBackend",
    "smtp": "django.core.mail.backends.smtp.EmailBackend",
}[ENV.email]
EMAIL_FILE_PATH = str(VAR_DIR / "email")
EMAIL_HOST, EMAIL_PORT = ENV.email_host, ENV.email_port
EMAIL_HOST_USER, EMAIL_HOST_PASSWORD = ENV.email_user, ENV.email_password
DEFAULT_FROM_EMAIL = ENV.email_from

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_I18N = False
FORMAT_MODULE_PATH = "common.formats"
USE_TZ = True

STATIC_URL = "static/"
STATICFILES_DIRS = [ROOT / "static"]
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = DEBUG

BLOB_ROOT = VAR_DIR / "blobs"
FILE_UPLOAD_MAX_MEMORY_SIZE = 1024 * 1024
MAX_DATASET_BYTES = ENV.max_dataset_bytes
DATA_UPLOAD_MAX_MEMORY_SIZE = 1024 * 1024
PLATFORM_FEE_BASIS_POINTS = ENV.fee_basis_points
INVOICE_SELLER = "\n".join(line.strip() for line in (ENV.invoice_seller or PUBLIC_URL).split(";"))
INVOICE_TAX_NAME = ENV.invoice_tax_name
INVOICE_TAX_BASIS_POINTS = ENV.invoice_tax_basis_points
STRIPE_SECRET_KEY = ENV.stripe_secret_key
STRIPE_WEBHOOK_SECRETS = [secret for secret in ENV.stripe_webhook_secrets.split(",") if secret]
STRIPE_API_BASE = ENV.stripe_api_base.rstrip("/")
EARNINGS_HOLD_BACK_DAYS = ENV.earnings_hold_back_days
PAYOUT_FEE_MICROUSD = ENV.payout_fee_microusd
ADJUSTMENT_LIMIT_MICROUSD = ENV.adjustment_limit_microusd
TORCH_THREADS = ENV.torch_threads

REST_FRAMEWORK: dict[str, Any] = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "accounts.api.authentication.TokenAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "DEFAULT_PARSER_CLASSES": [
        "common.api.StrictJSONParser",
        "rest_framework.parsers.FormParser",
        "rest_framework.parsers.MultiPartParser",
    ],
    "DEFAULT_PAGINATION_CLASS": "common.api.BoundedPagination",
    "EXCEPTION_HANDLER": "common.http.api_exception_handler",
    "TEST_REQUEST_DEFAULT_FORMAT": "json",
    # How many entries at the end of X-Forwarded-For are our own proxies' word, to tell clients apart.
    "NUM_PROXIES": ENV.proxies,
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Nightshift API",
    "DESCRIPTION": "Post training jobs, manage devices, read money. Errors are `{code, message, field}`.",
    "VERSION": "1",
    "SERVE_INCLUDE_SCHEMA": False,
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "COMPONENT_SPLIT_REQUEST": True,
    "ENUM_NAME_OVERRIDES": {
        "PayoutState": "billing.models.Payout.State",
        "DeliveryState": "billing.models.OwnerDelivery.State",
    },
}

LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "%(asctime)s %(levelname)s %(name)s: %(message)s"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["stderr"], "level": ENV.log_level},
    "loggers": {
        "django.request": {"level": "ERROR"},
        "daphne": {"level": "WARNING"},
        "stripe": {"level": "WARNING"},
        "celery": {"level": "WARNING"},
    },
}
