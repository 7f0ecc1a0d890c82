"""The tuning command times tiles and prints rows for the table."""

import pytest

from metal_kernels import tune
from metal_kernels.errors import RuntimeUnavailable
from metal_kernels.ir.spec import MAX_LANES, MAX_SHARED_BYTES
from metal_kernels.passes.tiles import NAIVE, tile_for
from metal_kernels.runtimes.wgpu import wgpu_device


def test_every_tile_of_the_table_and_every_candidate_fits_a_phone() -> None:
    shapes = [(1, 64, 64, 64), (1, 1024, 1024, 64), (4, 10, 700, 5)]
    chosen = [tile_for(device, shape) for device in ("cpu", "phone", "desktop") for shape in shapes]
    for tile in [NAIVE, *chosen, *tune.candidates(quick=False)]:
        assert tile.lanes <= MAX_LANES
        assert tile.shared_elements * 4 <= MAX_SHARED_BYTES


@pytest.mark.slow
def test_tuning_prints_the_fastest_tile(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        wgpu_device()
    except RuntimeUnavailable as missing:
        pytest.skip(missing.message)
    monkeypatch.setattr(tune, "SHAPES", {"wide": (32, 32, 32)})
    tune.main(["--quick"])
    assert '"wide": Tile(rows=' in capsys.readouterr().out
