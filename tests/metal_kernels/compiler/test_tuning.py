"""The tuning command times tiles and prints rows for the table."""

import pytest

from metal_kernels import tune
from metal_kernels.errors import RuntimeUnavailable
from metal_kernels.ir.spec import MAX_LANES, MAX_SHARED_BYTES
from metal_kernels.passes.tiles import NAIVE, ProductShape, tile_for, turns_of
from metal_kernels.runtimes.wgpu import wgpu_device


def test_every_tile_of_the_table_and_every_candidate_fits_a_phone() -> None:
    shapes = [
        ProductShape((1, 64, 64, 64)),
        ProductShape((1, 1024, 1024, 64)),
        ProductShape((4, 10, 700, 5)),
        ProductShape((64, 32, 196, 144), terms=(16, 3, 3), columns=(14, 14)),
        ProductShape((1, 5, 27, 961), terms=(1, 31, 31), columns=(3, 3, 3)),
    ]
    chosen = [tile_for(device, shape) for device in ("cpu", "phone", "desktop") for shape in shapes]
    for tile in [NAIVE, *chosen, *tune.candidates(quick=False)]:
        assert tile.lanes <= MAX_LANES
        assert tile.shared_elements * 4 <= MAX_SHARED_BYTES


def test_on_a_processor_tiles_keep_to_the_rows_of_images_and_windows() -> None:
    """A tile that straddles rows divides for every index and shares nothing."""
    forward = tile_for("cpu", ProductShape((64, 32, 196, 144), terms=(16, 3, 3), columns=(14, 14)))
    assert forward.columns % 14 == 0 or 14 % forward.columns == 0
    assert forward.depth % 3 == 0
    weights = tile_for("cpu", ProductShape((1, 32, 144, 12544), terms=(64, 14, 14), columns=(16, 3, 3)))
    assert weights.columns % 3 == 0
    assert weights.depth % 7 == 0


def test_a_turn_takes_whole_axes_of_the_terms_and_a_part_of_the_next() -> None:
    assert turns_of((16, 3, 3), 3) == ((16, 3), 3)
    assert turns_of((16, 3, 3), 9) == ((16,), 9)
    assert turns_of((16, 3, 3), 18) == ((), 144)
    assert turns_of((100,), 16) == ((), 100)


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
