"""Does a compiled program fit a device? Asked before anything is sent to it."""

from dataclasses import dataclass
from typing import Final

from metal_kernels.compiler.compiled import CompiledProgram
from metal_kernels.errors import DeviceLimitExceeded


@dataclass(frozen=True)
class DeviceLimits:
    """What a device lets one page or process take."""

    buffer_bytes: int
    total_bytes: int


IOS_SAFARI: Final = DeviceLimits(buffer_bytes=2**30 - 1, total_bytes=1_500_000_000)


def check_fits(compiled: CompiledProgram, limits: DeviceLimits, *, rows: int, steps: int) -> None:
    """Raise `DeviceLimitExceeded` with the figure, for a slice of `rows` rows and `steps` local steps."""
    total = compiled.peak_bytes(rows=rows, steps=steps)
    if total > limits.total_bytes:
        raise DeviceLimitExceeded(
            f"The program needs {total} bytes of GPU memory; the device has {limits.total_bytes}. Use a smaller "
            "batch, slice or model.",
            field="total_bytes",
        )
    for buffer in compiled.buffers:
        size = compiled.buffer_bytes(buffer, rows=rows, steps=steps)
        if size > limits.buffer_bytes:
            raise DeviceLimitExceeded(
                f"The {buffer.role} buffer '{buffer.key}' takes {size} bytes; one buffer may take "
                f"{limits.buffer_bytes} on the device. Use a smaller slice or layer.",
                field="buffer_bytes",
            )
