"""How products are cut into tiles: a small table by device class, filled by `python -m metal_kernels.tune`."""

from dataclasses import dataclass
from math import ceil
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
    "phone": {
        "wide": Tile(4, 4, 8, 8, 16, staged=True),
        "narrow": Tile(2, 4, 8, 8, 16, staged=True),
    },
    "desktop": {
        "wide": Tile(8, 8, 16, 16, 8, staged=True),
        "narrow": Tile(4, 4, 8, 8, 16, staged=True),
    },
}


@dataclass(frozen=True)
class ProductShape:
    """What a tile is chosen by: the extents (b, m, n, k), and the shapes that k and n are taken apart into."""

    extents: tuple[int, int, int, int]
    terms: tuple[int, ...] = ()
    columns: tuple[int, ...] = ()

    @property
    def slides(self) -> bool:
        """Whether it is a convolution of windows, which share what they read with their neighbours."""
        return len(whole_axes(self.terms)) > 1


def whole_axes(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The axes that count anything."""
    return tuple(extent for extent in shape if extent > 1)


def tile_for(device: DeviceClass, shape: ProductShape) -> Tile:
    """The tile for a product."""
    if device == "cpu":
        return _least_work(shape)
    _, m, n, _ = shape.extents
    tile = _TILES[device]["narrow" if min(m, n) < _SMALL else "wide"]
    if device == "desktop" and m * n < 256 * 256:
        tile = _TILES["phone"]["wide"] if min(m, n) >= _SMALL else _TILES[device]["narrow"]
    return tile


def turns_of(axes: tuple[int, ...], depth: int) -> tuple[tuple[int, ...], int]:
    """The axes to loop over, and how many of the terms inside them turns of `depth` go through."""
    inner = 1
    for position in range(len(axes) - 1, -1, -1):
        inner *= axes[position]
        if inner >= depth:
            return axes[:position], inner
    return (), inner


# A software adapter runs four lanes at a time on a processor's core. There a load of four lanes is a slow gather,
# every value that a loop carries is slower still, and arithmetic is nearly free: the tile is chosen by counting.

_SIMD_LANES: Final = 4
_LOAD_COST: Final = 10
_CARRY_COST: Final = 26
"""In multiplications with an addition, as measured on SwiftShader."""
_FEWEST_VECTORS: Final = 16
"""With less work than this, some cores have none."""
_FEWEST_GROUPS: Final = 8
_MOST_RESULTS: Final = 128
_MOST_PRODUCTS: Final = 512
"""Products that one turn of the loop spells out."""
_LANES: Final = 32
_POWERS: Final = (1, 2, 4, 8, 16, 32)


def _least_work(shape: ProductShape) -> Tile:
    _, m, n, _ = shape.extents
    choices = [
        (_work(shape, rows, columns, depth), rows, columns, depth)
        for rows in _POWERS[:-1]
        for columns in _widths(shape, n)
        for depth in _depths(shape)
        if rows < 2 * m and rows * columns <= _MOST_RESULTS and rows * columns * depth <= _MOST_PRODUCTS
    ]
    _, rows, columns, depth = min(choices)
    lanes_m, lanes_n = _workgroup(ceil(m / rows), ceil(n / columns))
    return Tile(rows, columns, lanes_m, lanes_n, depth, staged=False)


def _widths(shape: ProductShape, n: int) -> list[int]:
    """Parts of an image's row, or whole rows of it; else powers of two."""
    axes = whole_axes(shape.columns) if shape.slides else ()
    if not axes:
        return [size for size in _POWERS if size < 2 * n]
    fitting = [size for size in _parts(axes) if size <= _MOST_RESULTS]
    return fitting if max(fitting) >= min(4, n) else [*fitting, 4]


def _depths(shape: ProductShape) -> list[int]:
    """Parts of a window's row, whole rows, whole windows; else powers of two."""
    if shape.slides:
        return [size for size in _parts(whole_axes(shape.terms)) if size <= _MOST_PRODUCTS]
    return [size for size in _POWERS if size < 2 * shape.extents[3]]


def _parts(axes: tuple[int, ...]) -> list[int]:
    """The sizes that cut the elements of the axes into equal blocks of neighbours."""
    sizes, inner = {1}, 1
    for extent in reversed(axes):
        sizes |= {inner * size for size in range(1, extent + 1) if extent % size == 0}
        inner *= extent
    return sorted(sizes)


def _work(shape: ProductShape, rows: int, columns: int, depth: int) -> float:
    """The time that tiles of this size take for each term."""
    batch, m, n, terms = shape.extents
    loads = rows * depth + columns * depth
    if shape.slides:
        across, along = whole_axes(shape.columns), whole_axes(shape.terms)[-1]
        inner, taps = min(columns, across[-1]) if across else columns, min(depth, along)
        loads = rows * depth + ceil(columns / inner) * (inner + taps - 1) * depth // taps
    vectors = batch * ceil(m / rows) * ceil(n / columns) / _SIMD_LANES
    turn = (
        _LOAD_COST * loads + rows * columns * depth + (_CARRY_COST * rows * columns if depth < terms else 0)
    )
    return max(vectors, _FEWEST_VECTORS) * turn / depth


def _workgroup(tiles_m: int, tiles_n: int) -> tuple[int, int]:
    """Lanes along rows and columns: whole vectors, as few idle ones as can be, and neighbours along a row."""
    most = min(max(tiles_m * tiles_n // _FEWEST_GROUPS, _SIMD_LANES), _LANES)

    def idle(lanes_m: int, lanes_n: int) -> tuple[int, int, int]:
        total = ceil(tiles_m / lanes_m) * lanes_m * ceil(tiles_n / lanes_n) * lanes_n
        groups = ceil(tiles_m / lanes_m) * ceil(tiles_n / lanes_n)
        return total + groups, groups, lanes_m

    sizes = [
        (lanes_m, lanes_n)
        for lanes_m in range(1, _LANES + 1)
        for lanes_n in range(1, _LANES + 1)
        if lanes_m * lanes_n <= most and lanes_m * lanes_n % _SIMD_LANES == 0
    ]
    return min(sizes, key=lambda size: idle(*size))
