"""Four neighbouring loads become one.

A buffer that a kernel only reads, always at indices whose remainder by four is known, is declared as an array of
four-element vectors: the loads of one vector share it.
"""

from collections.abc import Iterator
from dataclasses import replace

from metal_kernels.ir.expr import Expr, lane4, local_var, memory, nodes, rebuild
from metal_kernels.ir.kernel import Assign, Declare, For, If, Kernel, Let, SharedStore, Statement, Store

WIDTH = 4


def vectorise(kernel: Kernel) -> Kernel:
    names = {
        buffer.name
        for buffer in kernel.buffers
        if buffer.access == "read" and buffer.elements and buffer.elements % WIDTH == 0
    }
    loads = {node for root in expressions(kernel.body) for node in nodes(root) if node.op == "load"}
    for name in sorted(names):
        indices = [load.args[0] for load in loads if load.value == name]
        if not _pays(indices):
            names.discard(name)
    if not names:
        return kernel
    buffers = tuple(replace(buffer, vector=buffer.name in names) for buffer in kernel.buffers)
    return replace(kernel, buffers=buffers, body=_Rewriter(names).body(kernel.body, {}))


def _pays(indices: list[Expr]) -> bool:
    """Whether every index has a known remainder and some vector is used more than once."""
    if not indices or not all((index % WIDTH).is_const for index in indices):
        return False
    return len({index // WIDTH for index in indices}) < len(indices)


def expressions(body: tuple[Statement, ...]) -> Iterator[Expr]:
    for statement in body:
        match statement:
            case Let() | Declare() | Assign():
                yield statement.value
            case Store() | SharedStore():
                yield from (statement.index, statement.value)
            case For():
                yield from (statement.start, statement.stop)
                yield from expressions(statement.body)
            case If():
                yield statement.condition
                yield from expressions(statement.body)


class _Rewriter:
    def __init__(self, names: set[str]) -> None:
        self._names = names
        self._count = 0

    def body(self, body: tuple[Statement, ...], known: dict[Expr, Expr]) -> tuple[Statement, ...]:
        """`known` are the vectors already loaded in the enclosing blocks."""
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
        done: dict[Expr, Expr] = {}
        for node in nodes(root):
            new = rebuild(node, tuple(done[arg] for arg in node.args))
            if new.op == "load" and new.value in self._names:
                index = new.args[0]
                vector = memory("load4", new.dtype, new.value, index // WIDTH)
                if vector not in known:
                    self._count += 1
                    known[vector] = local_var(f"q{self._count}", new.dtype)
                    written.append(Let(known[vector], vector))
                new = lane4(known[vector], (index % WIDTH).value)
            done[node] = new
        return done[root]
