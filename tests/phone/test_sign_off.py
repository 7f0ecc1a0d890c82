"""Phones and a laptop at a site of real processes: they learn a real job together, and come to the same deltas."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from playwright.sync_api import Browser
from torch import Tensor

from metal_kernels.delta import delta_decode
from metal_kernels.program.format import program_loads
from metal_kernels.tensorfile import tensorfile_loads
from scheduler.domain.spec import learning_rate_in_round
from tests.phone.sign_off_site import LEARNING_RATE, LOCAL_STEPS, ROUNDS, SCHEDULE, SHARDS
from tests.phone.worker.conftest import Night
from tests.scheduler.training import BATCH, digits
from tests.worker_protocol.test_real_devices_at_a_real_site import World
from worker_protocol.agent.trainer import Task, Trainer

pytestmark = [pytest.mark.browser, pytest.mark.end_to_end, pytest.mark.slow, pytest.mark.timeout(400)]

# Each side rounds its delta, the browser's carries what it lost before too, and sums run in another order.
LARGEST_DIFFERENCE_IN_UNITS = 4


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path, site_module="tests.phone.sign_off_site")
    yield world
    world.end()


@pytest.fixture
def codes(world: World) -> list[str]:
    """Pairing codes of one owner at the site, which is up."""
    site = world.start(world.site_module, str(world.port), str(SHARDS), log="site")
    assert site.stdout is not None
    found: list[str] = json.loads(site.stdout.readline())["codes"]
    return found


def paired(chromium: Browser, world: World, code: str) -> tuple[Night, str]:
    """A browser with a profile of its own that has become a device of the site, and the device's id."""
    night = Night(chromium.new_context().new_page())
    night.visit(world.url)
    device: str = night.call("pair", code)
    return night, device.replace("-", "")


def test_three_browsers_learn_the_digits(world: World, codes: list[str], chromium: Browser) -> None:
    nights = [paired(chromium, world, code) for code in codes]
    for night, _ in nights:
        night.start(url=None)  # which proves its kernels by the site's self-test first
    world.wait_until(lambda: world.ask("select state from scheduler_run") != [("active",)])
    assert world.ask("select state, ended_because from scheduler_run") == [("finished", "epochs")]
    assert world.rounds_closed() == ROUNDS
    accepted = world.ask("select device_id, shard_id from scheduler_lease where state = 'accepted'")
    assert len({shard for _, shard in accepted}) == SHARDS * ROUNDS
    assert {device for device, _ in accepted} == {device for _, device in nights}
    assert [night.call("failures") for night, _ in nights] == [[]] * len(nights)
    ((told,),) = world.ask('select validation_metric from scheduler_round order by "index" desc limit 1')
    ((params,),) = world.ask("select params_sha256 from scheduler_run")
    assert told == pytest.approx(accuracy(tensors(world, params)))
    assert told >= 0.95


def test_a_laptop_and_a_browser_share_a_job_and_move_the_same_shard_alike(
    world: World, codes: list[str], chromium: Browser
) -> None:
    night, phone = paired(chromium, world, codes[0])
    world.start_agent("laptop", "--pair", codes[1])
    night.start(url=None)
    world.wait_until(lambda: world.ask("select state from scheduler_run") != [("active",)])
    accepted = world.ask(
        "select device_id, count(*) from scheduler_lease where state = 'accepted' group by 1"
    )
    assert {device for device, _ in accepted} > {phone}
    for lease in leases_of(world, phone):
        assert_alike(world, lease)


def leases_of(world: World, device: str) -> list[dict[str, Any]]:
    """What a device's accepted leases asked for and brought."""
    columns = (
        "device",
        "delta_sha256",
        "program_sha256",
        "params_sha256",
        "slices",
        "slice_index",
        "seed",
        "losses",
        "round",
    )
    found = world.ask(
        "select l.device_id, l.delta_sha256, u.program_sha256, r.params_sha256, u.slices, s.slice_index, s.seed, "
        'l.losses, r."index" from scheduler_lease l join scheduler_shard s on s.id = l.shard_id '
        "join scheduler_round r on r.id = s.round_id join scheduler_run u on u.id = r.run_id "
        "where l.state = 'accepted' order by r.\"index\""
    )
    leases = [dict(zip(columns, row, strict=True)) for row in found]
    return [lease for lease in leases if lease["device"] == device]


def assert_alike(world: World, lease: dict[str, Any]) -> None:
    """The laptop's trainer makes of the same shard what the browser has sent in."""
    program = blob(world, lease["program_sha256"])
    task = Task(
        params=blob(world, lease["params_sha256"]),
        slice=blob(world, json.loads(lease["slices"])[lease["slice_index"]]["sha256"]),
        steps=LOCAL_STEPS,
        batch_size=BATCH,
        seed=lease["seed"],
        learning_rate=learning_rate_in_round(
            LEARNING_RATE, SCHEDULE, round_index=lease["round"], rounds_planned=ROUNDS
        ),
    )
    trained = Trainer().train(program, task, stop=threading.Event(), on_step=lambda _step: None)
    assert json.loads(lease["losses"]) == pytest.approx(trained.losses, rel=1e-3)
    spec = program_loads(program).model_spec
    sent, own = (
        delta_decode(data, spec=spec) for data in (blob(world, lease["delta_sha256"]), trained.delta)
    )
    for name in spec:
        unit = float(own[name].abs().max()) / 127
        torch.testing.assert_close(sent[name], own[name], rtol=0, atol=LARGEST_DIFFERENCE_IN_UNITS * unit)


def accuracy(params: dict[str, Tensor]) -> float:
    """On rows that no device has seen, reckoned here by hand."""
    data = digits()
    hidden = torch.relu(data.test_inputs @ params["0.weight"].T + params["0.bias"])
    scores = hidden @ params["2.weight"].T + params["2.bias"]
    return float((scores.argmax(1) == data.test_targets).float().mean())


def tensors(world: World, sha256: str) -> dict[str, Tensor]:
    return dict(tensorfile_loads(blob(world, sha256)).tensors)


def blob(world: World, sha256: str) -> bytes:
    return (world.folder / "var" / "blobs" / sha256[:2] / sha256[2:]).read_bytes()
