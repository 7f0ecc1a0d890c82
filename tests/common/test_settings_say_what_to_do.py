"""A wrong setting ends the process with one sentence that names the variable and the remedy."""

import stat
import subprocess
import sys

import pytest
from channels_redis.core import RedisChannelLayer

from marketplace.env import Env, SettingError, read_env, secret_key
from marketplace.settings import REDIS_SOCKET_TIMEOUT_S


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("NIGHTSHIFT_EMAIL_PORT", "mail", "'mail' is not a whole number from 1 to 65535"),
        ("NIGHTSHIFT_EMAIL_PORT", "70000", "a whole number from 1 to 65535"),
        ("NIGHTSHIFT_EMAIL", "pigeon", "one of console, file, smtp"),
        ("NIGHTSHIFT_FEE_BASIS_POINTS", "-1", "a whole number from 0 to 10000"),
        ("NIGHTSHIFT_PUBLIC_URL", "nightshift.example", "must start with http"),
        ("NIGHTSHIFT_DEBUG", "maybe", "true or false"),
        ("NIGHTSHIFT_REDIS", "redis://x", "no such setting"),
    ],
)
def test_a_wrong_value_is_one_sentence_with_the_variables_name(name, value, words):
    with pytest.raises(SettingError) as raised:
        read_env({name: value})
    message = str(raised.value)
    assert message.startswith(name)
    assert words in message


def test_an_empty_environment_runs_with_the_defaults():
    assert read_env({}) == Env()


def test_the_generated_key_is_kept_and_only_its_user_can_read_it(tmp_path):
    env = Env(var_dir=str(tmp_path / "var"))
    key = secret_key(env)
    assert len(key) >= 48
    assert secret_key(env) == key
    assert stat.S_IMODE((tmp_path / "var" / "secret.key").stat().st_mode) == 0o600


def test_a_short_key_is_refused_without_showing_it():
    with pytest.raises(SettingError) as raised:
        secret_key(Env(secret_key="hunter2"))
    assert "hunter2" not in str(raised.value)


@pytest.mark.slow
def test_a_process_with_a_wrong_database_address_ends_with_that_sentence(tmp_path):
    done = subprocess.run(
        [sys.executable, "manage.py", "check"],
        env={"NIGHTSHIFT_DATABASE_URL": "oracle//nope", "NIGHTSHIFT_VAR_DIR": str(tmp_path), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.strip().startswith("NIGHTSHIFT_DATABASE_URL: not a database address")
    assert "Traceback" not in done.stderr


def test_redis_may_be_read_for_longer_than_a_channel_waits_for_a_message():
    """Otherwise every socket and dispatcher that hears nothing for so long is cut off."""
    assert RedisChannelLayer.brpop_timeout < REDIS_SOCKET_TIMEOUT_S
