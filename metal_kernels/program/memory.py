"""How much memory a run needs, from the graph alone.

A value lives from the node that makes it to the last node that reads it; inputs, constants and outputs live
throughout. A view counts as a tensor of its own, so the estimate is an upper bound for a runtime that frees
values after their last use and shares nothing.
"""

from dataclasses import dataclass

from metal_kernels.program.graph import STATE_ROLES, Graph, Program


@dataclass(frozen=True)
class Memory:
    """Bytes on the device. `peak_bytes` includes state, batch and constants."""

    state_bytes: int
    constant_bytes: int
    batch_bytes: int
    peak_bytes: int


def program_memory(program: Program) -> Memory:
    graph = program.graph
    state_bytes = sum(entry.value.size_bytes for entry in program.inputs(*STATE_ROLES))
    constant_bytes = sum(value.size_bytes for value in graph.constants)
    batch_bytes = sum(entry.value.size_bytes for entry in program.inputs("input", "target", "scalar"))
    return Memory(
        state_bytes=state_bytes,
        constant_bytes=constant_bytes,
        batch_bytes=batch_bytes,
        peak_bytes=state_bytes + constant_bytes + batch_bytes + _peak_of_nodes(graph),
    )


def last_uses(graph: Graph) -> dict[str, int]:
    """For each value that a node makes: the index of the node after which nobody needs it.

    Outputs of the program are needed to the end, which counts as the index past the last node.
    """
    last = {
        value.name: index
        for index, node in enumerate(graph.nodes)
        for value in node.outputs
        if value is not None
    }
    for index, node in enumerate(graph.nodes):
        for name in node.refs():
            if name in last:
                last[name] = index
    for output in graph.outputs:
        if output.value in last:
            last[output.value] = len(graph.nodes)
    return last


def _peak_of_nodes(graph: Graph) -> int:
    """The most bytes that values made by nodes take at once; a node's inputs and outputs live together."""
    freed_after: dict[int, int] = {}
    sizes = {
        value.name: value.size_bytes for node in graph.nodes for value in node.outputs if value is not None
    }
    for name, index in last_uses(graph).items():
        freed_after[index] = freed_after.get(index, 0) + sizes[name]
    live = peak = 0
    for index, node in enumerate(graph.nodes):
        live += sum(value.size_bytes for value in node.outputs if value is not None)
        peak = max(peak, live)
        live -= freed_after.get(index, 0)
    return peak
