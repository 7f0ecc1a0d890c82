"""Typed settings from the environment: `NIGHTSHIFT_<NAME>`, with defaults that run.

A wrong value ends the process at start with one sentence that says which variable, what was wrong and what to set.
"""

import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, inspect

PREFIX = "NIGHTSHIFT_"
ROOT = Path(__file__).resolve().parent.parent


class SettingError(SystemExit):
    """A setting cannot be used; the message tells a person what to do."""


class Env(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Every setting a deployment may change. `.env.example` lists them with their meaning."""

    debug: bool = False
    secret_key: str = ""
    allowed_hosts: str = "localhost,127.0.0.1,[::1]"
    public_url: str = "http://127.0.0.1:8000"
    proxies: Annotated[int, Meta(ge=0, le=16)] = 0
    var_dir: str = str(ROOT / "var")
    database_url: str = ""
    redis_url: str = ""
    celery_broker_url: str = ""
    celery_queue: Annotated[str, Meta(min_length=1)] = "nightshift"
    email: Literal["console", "file", "smtp"] = "console"
    email_host: str = "localhost"
    email_port: Annotated[int, Meta(ge=1, le=65535)] = 25
    email_user: str = ""
    email_password: str = ""
    email_from: str = "Nightshift <no-reply@localhost>"
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    fee_basis_points: Annotated[int, Meta(ge=0, le=10_000)] = 2_000
    invoice_seller: Annotated[str, Meta(max_length=500)] = ""
    invoice_tax_name: Annotated[str, Meta(min_length=1, max_length=20)] = "Tax"
    invoice_tax_basis_points: Annotated[int, Meta(ge=0, le=5_000)] = 0
    stripe_secret_key: str = ""
    stripe_webhook_secrets: str = ""
    stripe_api_base: str = "https://api.stripe.com"
    earnings_hold_back_days: Annotated[int, Meta(ge=0, le=90)] = 7
    payout_fee_microusd: Annotated[int, Meta(ge=0, le=1_000_000)] = 250_000
    adjustment_limit_microusd: Annotated[int, Meta(ge=0)] = 50_000_000
    max_dataset_bytes: Annotated[int, Meta(ge=1)] = 256 * 1024 * 1024
    torch_threads: Annotated[int, Meta(ge=1, le=256)] = 1

    @property
    def var(self) -> Path:
        return Path(self.var_dir)


def read_env(environ: Mapping[str, str] = os.environ) -> Env:
    """Read and check every `NIGHTSHIFT_` variable; raises SettingError with a sentence."""
    given = {
        name.removeprefix(PREFIX).lower(): value
        for name, value in environ.items()
        if name.startswith(PREFIX) and value != ""
    }
    unknown = sorted(set(given) - set(Env.__struct_fields__))
    if unknown:
        names = ", ".join(PREFIX + name.upper() for name in unknown)
        raise SettingError(f"{names}: no such setting; .env.example lists those there are. Unset it.")
    try:
        env = msgspec.convert(given, Env, strict=False)
    except msgspec.ValidationError as error:
        field = str(error).rpartition("$.")[2].rstrip("`")
        name = PREFIX + field.upper()
        raise SettingError(
            f"{name}: {given[field]!r} is not {_wanted(field)}. Set {name} to one, or unset it."
        ) from None
    if not env.public_url.startswith(("http://", "https://")):
        raise SettingError(
            f"{PREFIX}PUBLIC_URL: must start with http:// or https://, as people's browsers reach the site."
        )
    return env


def _wanted(field: str) -> str:
    """What a setting may be, in words, read off its type."""
    kinds = {f.name: f.type for f in inspect.type_info(Env).fields}  # type: ignore[attr-defined]
    match kinds[field]:
        case inspect.BoolType():
            return "true or false"
        case inspect.LiteralType(values):
            return "one of " + ", ".join(map(str, values))
        case inspect.IntType(ge=low, le=high):
            return f"a whole number from {low}" + (f" to {high}" if high is not None else " up")
        case _:
            return "text"


def secret_key(env: Env) -> str:
    """The configured key, or one made on first start and kept in a file that only this user can read."""
    if env.secret_key:
        if len(env.secret_key) < 32:
            raise SettingError(f"{PREFIX}SECRET_KEY: shorter than 32 characters. Set a long random one.")
        return env.secret_key
    path = env.var / "secret.key"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return path.read_text().strip()
    except OSError as error:
        raise SettingError(
            f"{PREFIX}VAR_DIR: cannot write to {env.var} ({error.strerror}). Set it to a folder that you may write."
        ) from None
    with os.fdopen(handle, "w") as file:
        key = secrets.token_urlsafe(48)
        file.write(key)
    return key
