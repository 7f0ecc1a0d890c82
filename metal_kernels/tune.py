"""`python -m metal_kernels.tune`: time tiles on the GPU at hand and print the rows for `passes/tiles.py`.

Each shape of product is compiled with every candidate tile and run a few times; the best time counts.
"""

import argparse
import sys
import time
from collections.abc import Iterator
from itertools import product

import torch
from torch import Tensor, nn

from metal_kernels.compiler.compile import compile_program
from metal_kernels.errors import CompileError
from metal_kernels.frontend.capture import capture_forward
from metal_kernels.passes.tiles import Tile
from metal_kernels.runtimes.compiled import CompiledRuntime
from metal_kernels.runtimes.wgpu import WgpuBackend, wgpu_device

SHAPES = {"wide": (512, 512, 512), "narrow": (1024, 10, 256)}
"""By row of the table, the m, n, k that stand for it."""

RUNS = 3


class _Product(nn.Module):
    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        return a @ b


def candidates(*, quick: bool) -> Iterator[Tile]:
    sizes = [(4, 4), (8, 4)] if quick else [(2, 4), (4, 4), (8, 4), (4, 8), (8, 8)]
    lanes = [(4, 8), (8, 8)] if quick else [(4, 8), (8, 8), (8, 16), (16, 16)]
    for (rows, columns), (lanes_m, lanes_n) in product(sizes, lanes):
        yield Tile(rows, columns, lanes_m, lanes_n, 4, staged=False)
        for depth in (8, 16):
            tile = Tile(rows, columns, lanes_m, lanes_n, depth, staged=True)
            if tile.shared_elements * 4 <= 16 * 1024:
                yield tile


def gflops(device: object, shape: tuple[int, int, int], tile: Tile) -> float:
    """The best of a few runs of one product."""
    m, n, k = shape
    operands = torch.randn(m, k), torch.randn(k, n)
    program = capture_forward(_Product(), example_inputs=operands)
    compiled = compile_program(program, device="cpu", tile=tile).compiled
    backend = WgpuBackend(compiled, device)
    CompiledRuntime(program, compiled, backend).predict({}, *operands)
    return max(2 * m * n * k / backend.timed_step_s() / 1e9 for _ in range(RUNS))


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m metal_kernels.tune", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="try a few tiles only")
    quick = parser.parse_args(arguments).quick
    device = wgpu_device()
    started = time.perf_counter()
    for name, shape in SHAPES.items():
        measured: list[tuple[float, Tile]] = []
        for tile in candidates(quick=quick):
            try:
                measured.append((gflops(device, shape, tile), tile))
            except CompileError:
                continue
        measured.sort(key=lambda pair: -pair[0])
        lines = [f"{name}, product {shape}:"]
        lines += [f"  {speed:7.2f} GFLOP/s  {tile}" for speed, tile in measured[:3]]
        lines.append(f'  "{name}": {measured[0][1]},')
        sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.write(f"took {time.perf_counter() - started:.0f} s\n")


if __name__ == "__main__":
    main()
