"""How products are cut into tiles: a small table by device class, filled by `python -m metal_kernels.tune`."""

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

DeviceClass: TypeAlias = Literal["cpu", "phone", "desktop"]
"""`cpu` is a software adapter such as Mesa's lavapipe or Chromium's SwiftShader."""


@dataclass(frozen=True)
class Tile:
    """One lane computes `rows` x `columns` results; a workgroup has `lanes_m` x `lanes_n` lanes.

    `depth` terms of the sum are taken at a time. With `staged`, the workgroup first brings its operands' tiles into
    workgroup memory; without, each lane loads what it needs.
    """

    rows: int
    columns: int
    lanes_m: int
    lanes_n: int
    depth: int
    staged: bool

    @property
    def lanes(self) -> int:
        return self.lanes_m * self.lanes_n

    @property
    def group_rows(self) -> int:
        return self.rows * self.lanes_m

    @property
    def group_columns(self) -> int:
        return self.columns * self.lanes_n

    @property
    def shared_elements(self) -> int:
        return self.depth * (self.group_rows + self.group_columns) if self.staged else 0


NAIVE: Final = Tile(1, 1, 8, 8, 1, staged=False)
"""One result a lane: what tiles are measured against."""

_SMALL: Final = 16
"""Results of fewer rows or columns leave most of a large tile empty."""

_TILES: Final[dict[DeviceClass, dict[str, Tile]]] = {
    "cpu": {
        "wide": Tile(8, 4, 4, 8, 4, staged=False),
        "narrow": Tile(2, 4, 4, 4, 4, staged=False),
    },
    "phone": {
        "wide": Tile(4, 4, 8, 8, 16, staged=True),
        "narrow": Tile(2, 4, 8, 8, 16, staged=True),
    },
    "desktop": {
        "wide": Tile(8, 8, 16, 16, 8, staged=True),
        "narrow": Tile(4, 4, 8, 8, 16, staged=True),
    },
}


def tile_for(device: DeviceClass, extents: tuple[int, int, int, int]) -> Tile:
    """The tile for a product of extents (b, m, n, k)."""
    _, m, n, _ = extents
    tile = _TILES[device]["narrow" if min(m, n) < _SMALL else "wide"]
    if device == "desktop" and m * n < 256 * 256:
        tile = _TILES["phone"]["wide"] if min(m, n) >= _SMALL else _TILES[device]["narrow"]
    return tile
