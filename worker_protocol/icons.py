"""The app's icons, drawn from moon.svg's own figures: `python -m worker_protocol.icons` writes the PNG files anew.

Phones want bitmaps: Android two sizes and one that it may crop to any shape, iOS one without see-through corners.
"""

import struct
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

FOLDER = Path(__file__).parent / "static" / "worker_protocol" / "app" / "icons"

SKY, MOON = (0x2B, 0x2F, 0x6B), (0xFF, 0xD1, 0x66)
SIDE = 32.0  # of moon.svg's view box; all measures below are in its units
CORNER = 8.0
# The crescent is what the first circle has beyond the second: (centre, radius).
DISC, SHADOW = ((14.728, 15.688), 9.3), ((18.963, 12.772), 7.4)
MIDDLE = (14.95, 15.65)  # of the crescent as the eye sees it
SAMPLES = 4  # a side, for each pixel
# A mask keeps at least the middle circle of 80 % of the side, so the moon has to be inside that.
MASKED_SCALE = 0.78


@dataclass(frozen=True, slots=True)
class Icon:
    name: str
    pixels: int
    rounded: bool
    scale: float = 1.0


ICONS = (
    Icon("icon-192.png", 192, rounded=True),
    Icon("icon-512.png", 512, rounded=True),
    Icon("maskable-512.png", 512, rounded=False, scale=MASKED_SCALE),
    Icon("apple-touch-icon.png", 180, rounded=False, scale=0.9),
)

Mask = NDArray[np.bool_]


def icon_png(icon: Icon) -> bytes:
    """The icon as a PNG file with 8-bit RGBA pixels."""
    side = icon.pixels * SAMPLES
    at = (np.arange(side) + 0.5) * SIDE / side
    x, y = np.meshgrid(at, at)
    moon = _share(_moon((x - SIDE / 2) / icon.scale + MIDDLE[0], (y - SIDE / 2) / icon.scale + MIDDLE[1]))
    shape = _share(_rounded(x, y)) if icon.rounded else np.ones_like(moon)
    colour = np.array(SKY) + (np.array(MOON) - np.array(SKY)) * moon[..., None]
    pixels = np.dstack([colour, 255 * shape]).round().astype(np.uint8)
    return _png(pixels)


def icons_write(folder: Path = FOLDER) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for icon in ICONS:
        (folder / icon.name).write_bytes(icon_png(icon))


def _moon(x: NDArray[np.float64], y: NDArray[np.float64]) -> Mask:
    def within(centre: tuple[float, float], radius: float) -> Mask:
        inside: Mask = (x - centre[0]) ** 2 + (y - centre[1]) ** 2 <= radius**2
        return inside

    return within(*DISC) & ~within(*SHADOW)


def _rounded(x: NDArray[np.float64], y: NDArray[np.float64]) -> Mask:
    """Inside the square with round corners: near enough to the square that is a corner's radius smaller."""
    past_x = np.maximum(np.abs(x - SIDE / 2) - (SIDE / 2 - CORNER), 0)
    past_y = np.maximum(np.abs(y - SIDE / 2) - (SIDE / 2 - CORNER), 0)
    inside: Mask = past_x**2 + past_y**2 <= CORNER**2
    return inside


def _share(mask: Mask) -> NDArray[np.float64]:
    """How much of each pixel the mask covers, by its samples."""
    pixels = mask.shape[0] // SAMPLES
    share: NDArray[np.float64] = mask.reshape(pixels, SAMPLES, pixels, SAMPLES).mean(axis=(1, 3))
    return share


def _png(pixels: NDArray[np.uint8]) -> bytes:
    """PNG (third edition): signature, header, one stream of rows each after filter 2 (Up), end."""
    height, width, _ = pixels.shape
    up = np.diff(pixels, axis=0, prepend=np.zeros_like(pixels[:1]))
    rows = b"".join(b"\x02" + row.tobytes() for row in up)
    header = struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)
    chunks = (b"IHDR", header), (b"IDAT", zlib.compress(rows, 9)), (b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in chunks)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


if __name__ == "__main__":
    icons_write()
