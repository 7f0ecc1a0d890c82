"""What a browser shows of itself before it gets work: its means, right kernels, its speed."""

import pytest

from accounts.domain.device_classes import DEVICE_CLASSES
from tests.phone.worker.conftest import Harness, Night

pytestmark = pytest.mark.browser


@pytest.fixture
def worker(night: Night, address: str) -> Night:
    night.visit(address)
    night.call("open", "worker")
    return night


def test_the_probe_tells_of_the_gpu_and_lacks_nothing_here(worker: Night) -> None:
    worker.tell({"type": "probe"})
    told = worker.answer("probe")
    assert told["missing"] == []
    assert (told["variant"], told["deviceClass"]) == ("cpu", "laptop-cpu")
    assert told["limits"]["maxBufferSize"] > 0
    assert told["timestamps"] is ("timestamp-query" in told["features"])


def test_right_kernels_pass_the_self_test(worker: Night) -> None:
    worker.tell({"type": "self_test"})
    told = worker.answer("self_test")
    assert (told["ok"], told["failed"], told["cases"]) == (True, [], [])


def test_a_self_test_sees_nothing_of_what_ran_before(page: Harness) -> None:
    first, with_rounding_of_first, anew, _ = page.call("deltasOfSelfTests")
    assert anew == first
    assert with_rounding_of_first != first  # as error feedback adds to it what the first delta lost


def test_a_shard_whose_numbers_break_spoils_no_later_one(page: Harness) -> None:
    before, broken, after = page.call("afterBrokenShard")
    assert broken["error"]["code"] == "delta_not_finite"
    assert before == after == {"value": 1}


@pytest.mark.slow
@pytest.mark.timeout(900)  # some fifty trainings
@pytest.mark.parametrize(
    "case",
    [
        "dense",
        "coarse",
        *(pytest.param(case, marks=pytest.mark.exhaustive) for case in ("convolution", "attention")),
    ],
)
def test_whichever_kernel_is_wrong_the_self_test_fails(page: Harness, case: str) -> None:
    verdicts = page.call("wrongKernels", case)
    assert len(verdicts) > 5
    assert [verdict["kernel"] for verdict in verdicts if verdict["ok"]] == []
    assert all(verdict["failed"] for verdict in verdicts)


def test_the_benchmark_gives_a_class_of_the_sites_and_a_speed(worker: Night) -> None:
    worker.tell({"type": "benchmark", "ms": 1_500})
    result = worker.answer("benchmark", lambda told: "progress" not in told)["result"]
    progress = [told["progress"] for told in worker.call("told", "worker", "benchmark") if "progress" in told]
    assert progress == sorted(progress)
    assert progress[-1] == 1
    assert result["deviceClass"] in DEVICE_CLASSES
    assert result["flopsPerSecond"] > 0
    assert result["speedFactor"] > 0


def test_a_site_without_a_self_test_is_a_plain_error(worker: Night) -> None:
    worker.tell({"type": "self_test", "url": "/nowhere/self-test.json"})
    assert worker.answer("self_test")["error"]["code"] == "self_test_unavailable"


@pytest.mark.parametrize(
    ("info", "agent", "variant"),
    [
        ({"vendor": "google", "architecture": "swiftshader"}, "Chrome", "cpu"),
        ({"description": "llvmpipe (LLVM 15)"}, "Chrome", "cpu"),
        ({"isFallbackAdapter": True, "vendor": "nvidia"}, "Chrome", "cpu"),
        ({"vendor": "apple", "architecture": "metal-3"}, "Mozilla (iPhone; CPU iPhone OS 26_0)", "phone"),
        ({"vendor": "qualcomm", "architecture": "adreno-7xx"}, "Mozilla (Linux; Android 14)", "phone"),
        ({"vendor": "arm"}, "Mozilla (X11)", "phone"),
        ({"vendor": "apple"}, "Mozilla (Macintosh)", "desktop"),
        ({}, "Mozilla (X11)", "desktop"),
    ],
)
def test_an_adapter_gets_the_kernels_that_suit_it(
    page: Harness, info: dict[str, object], agent: str, variant: str
) -> None:
    assert page.call("variantFor", info, agent) == variant
