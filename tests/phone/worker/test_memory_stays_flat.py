"""A night is a thousand steps and more: what a lease takes it gives back."""

import pytest

from tests.phone.worker.conftest import Harness

pytestmark = pytest.mark.browser


def test_a_thousand_steps_leave_as_many_gpu_buffers_as_the_first_fifty(page: Harness) -> None:
    buffers = page.call("buffersAfterEach", 20)
    assert set(buffers["counts"]) == {buffers["counts"][0]}


def test_the_page_holds_no_more_after_a_thousand_steps_than_after_a_few_hundred(page: Harness) -> None:
    heaps = []
    devtools = page.page.context.new_cdp_session(page.page)
    for leases in (6, 10, 10):
        page.call("buffersAfterEach", leases)
        page.page.request_gc()
        heaps.append(devtools.send("Runtime.getHeapUsage")["usedSize"])
    assert heaps[-1] - heaps[0] < 0.1 * heaps[0]
