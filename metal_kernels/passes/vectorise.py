"""Four neighbouring loads become one.

A buffer that a kernel only reads, always at indices whose remainder by four is known, is declared as an array of
four-element vectors: the loads of one vector share it. The remainder is that of the index with every local replaced
by what it stands for; the code still goes by the locals, which hold what is not worth computing again.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from metal_kernels.ir.expr import LEAVES, Expr, Substitution, lane4, local_var, memory, nodes, rebuild
from metal_kernels.ir.kernel import (
    Assign,
    Declare,
    For,
    If,
    Kernel,
    Let,
    MatrixLoad,
    MatrixStore,
    SharedStore,
    Statement,
    Store,
)
from metal_kernels.ir.scalars import SCALAR_OPS

WIDTH = 4
ARITHMETIC: Final = LEAVES | SCALAR_OPS.keys()


def vectorise(kernel: Kernel) -> Kernel:
    names = {
        buffer.name
        for buffer in kernel.buffers
        if buffer.access == "read" and buffer.elements and buffer.elements % WIDTH == 0
    }
    meanings = _meanings(kernel.body)
    loads = {node for root in expressions(kernel.body) for node in nodes(root) if node.op == "load"}
    whole = {load.args[0]: meanings.of(load.args[0]) for load in loads if load.value in names}
    for name in sorted(names):
        if not _pays([whole[load.args[0]] for load in loads if load.value == name]):
            names.discard(name)
    if not names:
        return kernel
    buffers = tuple(replace(buffer, vector=buffer.name in names) for buffer in kernel.buffers)
    return replace(kernel, buffers=buffers, body=_Rewriter(names, whole).body(kernel.body, {}))


def _meanings(body: tuple[Statement, ...]) -> Substitution:
    """The integer locals that arithmetic alone gives, each in terms of lanes, workgroups and loop variables.

    What memory or an assigned variable has a part in may change between two uses and stands for itself.
    """
    written = list(statements(body))
    assigned = {one.variable for one in written if isinstance(one, Declare)}
    meanings = Substitution()
    for one in written:
        if not isinstance(one, Let) or one.variable.dtype != "i32":
            continue
        meaning = meanings.of(one.value)
        if all(node.op in ARITHMETIC and node not in assigned for node in nodes(meaning)):
            meanings.add(one.variable, meaning)
    return meanings


def _pays(indices: list[Expr]) -> bool:
    """Whether every index has a known remainder and some vector is used more than once."""
    if not indices or not all((index % WIDTH).is_const for index in indices):
        return False
    return len({index // WIDTH for index in indices}) < len(indices)


def _has_loads(root: Expr) -> bool:
    return root.op == "load" or any(node.op == "load" for node in root.below)


def statements(body: tuple[Statement, ...]) -> Iterator[Statement]:
    """All statements in order, a block's own before those in it."""
    for statement in body:
        yield statement
        if isinstance(statement, For | If):
            yield from statements(statement.body)


def expressions(body: tuple[Statement, ...]) -> Iterator[Expr]:
    for statement in statements(body):
        match statement:
            case Let() | Declare() | Assign():
                yield statement.value
            case Store() | SharedStore():
                yield from (statement.index, statement.value)
            case For():
                yield from (statement.start, statement.stop)
            case If():
                yield statement.condition
            case MatrixLoad() | MatrixStore():
                yield statement.index


class _Rewriter:
    """`whole` is what the index of each load stands for."""

    def __init__(self, names: set[str], whole: dict[Expr, Expr]) -> None:
        self._names = names
        self._whole = whole
        self._count = 0

    def body(self, body: tuple[Statement, ...], known: dict[Expr, Expr]) -> tuple[Statement, ...]:
        """`known` are the vectors already loaded in the enclosing blocks, by what their load stands for."""
        known = dict(known)
        written: list[Statement] = []
        for statement in body:
            match statement:
                case Let() | Declare() | Assign():
                    written.append(replace(statement, value=self._expr(statement.value, known, written)))
                case Store() | SharedStore():
                    value = self._expr(statement.value, known, written)
                    written.append(
                        replace(statement, index=self._expr(statement.index, known, written), value=value)
                    )
                case For():
                    written.append(replace(statement, body=self.body(statement.body, known)))
                case If():
                    condition = self._expr(statement.condition, known, written)
                    written.append(
                        replace(statement, condition=condition, body=self.body(statement.body, known))
                    )
                case _:
                    written.append(statement)
        return tuple(written)

    def _expr(self, root: Expr, known: dict[Expr, Expr], written: list[Statement]) -> Expr:
        if not _has_loads(root):
            return root
        done: dict[Expr, Expr] = {}
        for node in nodes(root):
            new = rebuild(node, tuple([done[arg] for arg in node.args])) if node.args else node
            if new.op == "load" and new.value in self._names:
                index = self._whole[node.args[0]]
                vector = memory("load4", new.dtype, new.value, index // WIDTH)
                if vector not in known:
                    self._count += 1
                    known[vector] = local_var(f"q{self._count}", new.dtype)
                    load = memory("load4", new.dtype, new.value, new.args[0] // WIDTH)
                    written.append(Let(known[vector], load))
                new = lane4(known[vector], (index % WIDTH).value)
            done[node] = new
        return done[root]
