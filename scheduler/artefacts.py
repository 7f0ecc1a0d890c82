"""Programs and tensors of runs, read from the blob store. Programs are validated once and kept."""

from functools import lru_cache

from blobs.selectors import blob_bytes
from metal_kernels.program.format import program_loads
from metal_kernels.program.graph import Program
from metal_kernels.runtimes.reference import ReferenceRuntime
from metal_kernels.tensorfile import tensorfile_loads
from scheduler.aggregation import Tensors

_PROGRAM_BYTES_MAX = 256 * 2**20
_TENSORS_BYTES_MAX = 4 * 2**30
_KEPT = 8


@lru_cache(maxsize=_KEPT)
def program_of(sha256: str) -> Program:
    return program_loads(blob_bytes(sha256, max_bytes=_PROGRAM_BYTES_MAX))


@lru_cache(maxsize=_KEPT)
def runtime_of(sha256: str) -> ReferenceRuntime:
    return ReferenceRuntime(program_of(sha256))


def tensors_of(sha256: str) -> Tensors:
    return tensorfile_loads(blob_bytes(sha256, max_bytes=_TENSORS_BYTES_MAX)).tensors


def parameter_names(program: Program) -> frozenset[str]:
    return frozenset(entry.key for entry in program.inputs("parameter"))


def batch_rows(program: Program) -> int:
    """How many rows a program takes at once."""
    return program.inputs("input")[0].value.shape[0]
