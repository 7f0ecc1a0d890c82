"""Is a reported result what an honest device could have made? Each refusal has a stable code."""

import math
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from statistics import median

from metal_kernels.delta import delta_decode, delta_norm
from metal_kernels.errors import KernelError
from metal_kernels.program.graph import DeltaBits, Value

# A delta is refused beyond NORM_FACTOR times the run's median norm, once NORMS_NEEDED are known, and at any time
# beyond NORM_MAX, which no sane learning rate reaches.
NORM_FACTOR = 10.0
NORMS_NEEDED = 3
NORM_MAX = 10_000.0


@dataclass(frozen=True, slots=True)
class Verdict:
    """`refusal` is None for a result to accept, or the code of why it is refused."""

    refusal: str | None
    delta_norm: float = 0.0


def losses_refusal(*, steps: int, losses: Sequence[float], local_steps: int) -> str | None:
    """Every step was made and has a finite loss."""
    if steps != local_steps:
        return "steps_wrong"
    if len(losses) != steps or not all(math.isfinite(loss) for loss in losses):
        return "losses_bad"
    return None


def delta_verdict(
    data: bytes,
    *,
    spec: Mapping[str, Value],
    bits: DeltaBits,
    parameters: AbstractSet[str],
    known_norms: Sequence[float],
) -> Verdict:
    """The delta has the program's bits and the model's shapes, is finite, and moved the parameters within reason."""
    try:
        delta = delta_decode(data, spec=spec, bits=bits)
    except KernelError as error:
        return Verdict(error.code)
    norm = delta_norm({name: tensor for name, tensor in delta.items() if name in parameters})
    if not norm <= norm_limit(known_norms):
        return Verdict("delta_norm")
    return Verdict(None, norm)


def norm_limit(known_norms: Sequence[float]) -> float:
    """How far a delta may move the parameters, given the norms of the run's accepted deltas."""
    typical = median(known_norms) if len(known_norms) >= NORMS_NEEDED else 0.0
    return min(NORM_FACTOR * typical, NORM_MAX) if typical > 0 else NORM_MAX
