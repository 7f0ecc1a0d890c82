"""The IR as text, for people and for golden files."""

from collections.abc import Iterator
from typing import Final

from metal_kernels.ir.expr import Expr, Tensor
from metal_kernels.ir.kernel import (
    Assign,
    Barrier,
    Declare,
    For,
    If,
    Kernel,
    Let,
    MatrixLoad,
    MatrixMultiply,
    MatrixStatement,
    MatrixStore,
    MatrixZero,
    SharedStore,
    Statement,
    Store,
)

_INFIX: Final = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "idiv": "//", "mod": "%", "lt": "<", "le": "<=", "eq": "==",
    "ne": "!=", "and": "and", "or": "or",
}  # fmt: skip


def expr_text(expr: Expr) -> str:
    if expr.op in ("var", "uniform"):
        return str(expr.value)
    if expr.op == "const":
        return repr(expr.value)
    args = [expr_text(arg) for arg in expr.args]
    if expr.op in _INFIX:
        return f"({args[0]} {_INFIX[expr.op]} {args[1]})"
    if expr.op == "lane4":
        return f"{args[0]}.{expr.value}"
    if expr.value is not None:
        name = expr.value.name if isinstance(expr.value, Tensor) else expr.value
        return f"{name}[{', '.join(args)}]{'x4' if expr.op == 'load4' else ''}"
    return f"{expr.op}({', '.join(args)})"


def kernel_text(kernel: Kernel) -> str:
    buffers = ", ".join(f"{buffer.access} {buffer.name}: {buffer.dtype}" for buffer in kernel.buffers)
    head = f"kernel {kernel.name}({buffers}) groups {kernel.groups} lanes {kernel.lanes}"
    return "\n".join([head, *_lines(kernel.body, "  ")]) + "\n"


def _lines(body: tuple[Statement, ...], indent: str) -> Iterator[str]:
    for statement in body:
        match statement:
            case Let(variable, value) | Assign(variable, value) | Declare(variable, value):
                word = {Let: "let ", Declare: "var "}.get(type(statement), "")
                yield f"{indent}{word}{variable.value} = {expr_text(value)}"
            case Store(target, index, value) | SharedStore(target, index, value):
                yield f"{indent}{target}[{expr_text(index)}] = {expr_text(value)}"
            case For(variable, start, stop, step, inner):
                yield f"{indent}for {variable} in {start}..{stop} by {step}"
                yield from _lines(inner, indent + "  ")
            case If(condition, inner):
                yield f"{indent}if {condition}"
                yield from _lines(inner, indent + "  ")
            case Barrier(scope):
                yield f"{indent}barrier" + ("" if scope == "workgroup" else f" of the {scope}")
            case MatrixZero() | MatrixLoad() | MatrixMultiply() | MatrixStore():
                yield indent + _matrix_line(statement)


def _matrix_line(statement: MatrixStatement) -> str:
    match statement:
        case MatrixZero(matrix):
            return f"matrix {matrix} = 0"
        case MatrixLoad(matrix, shared, index, stride, transposed):
            place = f"{shared}[{expr_text(index)}] by {stride}"
            return f"matrix {matrix} = {place}{' transposed' if transposed else ''}"
        case MatrixMultiply(total, left, right):
            return f"{total} += {left} @ {right}"
        case MatrixStore(matrix, shared, index, stride):
            return f"{shared}[{expr_text(index)}] by {stride} = {matrix}"
