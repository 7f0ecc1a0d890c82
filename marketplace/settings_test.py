"""Settings of the test suite: a folder of its own for everything that is written, cheap password hashing."""

import tempfile
from pathlib import Path

from marketplace.settings import *  # noqa: F403

VAR_DIR = Path(tempfile.mkdtemp(prefix="nightshift-test-"))
BLOB_ROOT = VAR_DIR / "blobs"
EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
