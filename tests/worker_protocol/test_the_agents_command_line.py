"""What the command line says and how it exits."""

import re

import pytest

from accounts.domain.device_classes import DEVICE_CLASSES
from worker_protocol.agent import __main__ as command
from worker_protocol.agent.benchmark import measure_speed
from worker_protocol.agent.keys import Pairing, key_open, pairing_save

GONE = "http://127.0.0.1:9"


@pytest.fixture
def run(tmp_path, capsys):
    """Runs the command with a state folder of its own: (exit code, what it printed)."""

    def main(*arguments: str) -> tuple[int, str]:
        code = command.main([*arguments, "--state", str(tmp_path / "state")])
        printed = capsys.readouterr()
        return code, printed.out + printed.err

    return main


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--server", "nowhere"], "not the address of a site"),
        (["--server", GONE], "--pair CODE"),
        (["--server", GONE, "--pair", "AAAA-AAAA"], "No Nightshift site answers at http://127.0.0.1:9"),
    ],
)
def test_what_only_a_person_can_mend_is_one_sentence_and_exit_1(arguments, sentence, run):
    code, printed = run(*arguments)
    assert code == 1
    assert sentence in printed
    assert len(printed.strip().splitlines()) == 1


def test_a_paired_device_whose_site_is_gone_ends_at_the_start(run, tmp_path):
    state = tmp_path / "state"
    key_open(state)
    pairing_save(state, Pairing(server=GONE, device_id="0b5c1a52-7f3e-4c58-9a57-2f4f6f1d0c11"))
    code, printed = run("--server", GONE)
    assert (code, printed.count("\n")) == (1, 1)
    assert "check --server" in printed


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--server", GONE, "--benchmark"],
        ["--server", GONE, "--throttle", "2"],
        ["--benchmark", "--threads", "0"],
    ],
)
def test_wrong_arguments_are_explained_and_exit_2(arguments, run):
    with pytest.raises(SystemExit) as ended:
        run(*arguments)
    assert ended.value.code == 2


def test_the_benchmark_prints_speed_and_class_factor(run):
    code, printed = run("--benchmark")
    assert code == 0
    found = re.search(r"([\d.]+) GFLOP/s .* ([\d.]+) x .*\(laptop-cpu\)", printed)
    assert found is not None, printed
    assert float(found[1]) > 0
    assert 0.25 <= float(found[2]) <= 4


def test_a_throttled_device_measures_slower(run):
    run("--benchmark")  # sets torch's threads
    device_class = DEVICE_CLASSES["phone-high"]
    full, tenth = measure_speed(device_class), measure_speed(device_class, throttle=0.1)
    assert tenth.run_us > 2 * full.run_us
