"""Settings of the test suite: a folder of its own for everything that is written, cheap password hashing."""

import tempfile
from pathlib import Path

from marketplace.settings import *  # noqa: F403

VAR_DIR = Path(tempfile.mkdtemp(prefix="nightshift-test-"))
BLOB_ROOT = VAR_DIR / "blobs"
EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]

# Threads of one test share a file; a database in memory would lock them out instead of letting them wait.
if DATABASES["default"]["ENGINE"].endswith("sqlite3"):  # noqa: F405
    DATABASES["default"]["TEST"] = {"NAME": str(VAR_DIR / "test.sqlite3")}  # noqa: F405

# A test's threads come and go, and what they keep open would keep its database from being emptied.
DATABASES["default"]["CONN_MAX_AGE"] = 0  # noqa: F405
