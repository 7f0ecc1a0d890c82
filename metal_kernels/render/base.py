"""Kernels as text. What two shading languages have in common is here; a `Dialect` is the rest, as tables."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Final

from metal_kernels.ir.expr import Expr, nodes
from metal_kernels.ir.kernel import (
    GROUP_NAMES,
    LANE_NAME,
    SIMDGROUP_NAME,
    UNIFORMS,
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
from metal_kernels.ir.scalars import Scalar
from metal_kernels.passes.vectorise import expressions

_USUAL_UNIFORMS: Final = 3
"""Most kernels read none of the record's fields after these, so their text leaves the others out."""

COMMON_OPERATIONS: Final[Mapping[str, str]] = {
    "add": "({0} + {1})", "sub": "({0} - {1})", "mul": "({0} * {1})", "div": "({0} / {1})",
    "idiv": "({0} / {1})", "mod": "({0} % {1})", "neg": "(-{0})", "fma": "fma({0}, {1}, {2})",
    "min": "min({0}, {1})", "max": "max({0}, {1})", "abs": "abs({0})", "sign": "sign({0})", "pow": "pow({0}, {1})",
    "exp": "exp({0})", "log": "log({0})", "tanh": "tanh({0})", "sin": "sin({0})", "cos": "cos({0})",
    "sqrt": "sqrt({0})", "floor": "floor({0})", "ceil": "ceil({0})",
    "eq": "({0} == {1})", "ne": "({0} != {1})", "lt": "({0} < {1})", "le": "({0} <= {1})",
    "and": "({0} && {1})", "or": "({0} || {1})", "not": "(!{0})",
    "bit_and": "({0} & {1})", "bit_or": "({0} | {1})", "bit_xor": "({0} ^ {1})",
}  # fmt: skip


@dataclass(frozen=True)
class Dialect:
    """A shading language. `head` writes everything before the body; the templates fill in a statement.

    `matrices` are the templates of statements about matrices, by class; a language without them has none.
    """

    name: str
    types: Mapping[Scalar, str]
    vector_types: Mapping[Scalar, str]
    operations: Mapping[str, str]
    let: str
    declare: str
    loop: str
    barriers: Mapping[str, str]
    head: Callable[[Kernel], list[str]]
    matrices: Mapping[type[Statement], str] = field(default_factory=dict)


def render(kernel: Kernel, dialect: Dialect) -> str:
    """The kernel's source, with `kernel.name` as its entry point."""
    lines = [*dialect.head(kernel), *_body(kernel.body, dialect, "  "), "}"]
    return "\n".join(lines) + "\n"


def uniform_fields(kernel: Kernel) -> list[tuple[str, Scalar]]:
    """The fields of the record of per-step numbers as far as the kernel needs them declared."""
    used = {name for name, _ in kernel.uniforms}
    fields = list(UNIFORMS.items())
    return fields if used & {name for name, _ in fields[_USUAL_UNIFORMS:]} else fields[:_USUAL_UNIFORMS]


def used_places(kernel: Kernel) -> list[str]:
    """Which of the grid's coordinates and the lane the body uses."""
    used = {node.value for node in nodes(*expressions(kernel.body)) if node.op == "var"}
    return [name for name in (*GROUP_NAMES, LANE_NAME, SIMDGROUP_NAME) if name in used]


def _body(body: tuple[Statement, ...], dialect: Dialect, indent: str) -> Iterator[str]:
    for statement in body:
        match statement:
            case Let(variable, value) | Declare(variable, value):
                template = dialect.let if isinstance(statement, Let) else dialect.declare
                types = dialect.vector_types if value.op == "load4" else dialect.types
                yield indent + template.format(
                    type=types[variable.dtype], name=variable.value, value=expr_source(value, dialect)
                )
            case Assign(variable, value):
                yield f"{indent}{variable.value} = {expr_source(value, dialect)};"
            case Store(target, index, value) | SharedStore(target, index, value):
                yield f"{indent}{target}[{expr_source(index, dialect)}] = {expr_source(value, dialect)};"
            case For():
                yield indent + dialect.loop.format(
                    name=statement.variable.value,
                    start=expr_source(statement.start, dialect),
                    stop=expr_source(statement.stop, dialect),
                    step=statement.step,
                )
                yield from _body(statement.body, dialect, indent + "  ")
                yield indent + "}"
            case If():
                yield f"{indent}if ({expr_source(statement.condition, dialect)}) {{"
                yield from _body(statement.body, dialect, indent + "  ")
                yield indent + "}"
            case Barrier(scope):
                yield indent + dialect.barriers[scope]
            case MatrixZero() | MatrixLoad() | MatrixMultiply() | MatrixStore():
                yield indent + _matrix_source(statement, dialect)


def _matrix_source(statement: MatrixStatement, dialect: Dialect) -> str:
    parts = {entry.name: getattr(statement, entry.name) for entry in fields(statement)}
    if isinstance(statement, MatrixLoad | MatrixStore):
        parts["index"] = expr_source(statement.index, dialect)
    if isinstance(statement, MatrixLoad):
        parts["transposed"] = "true" if statement.transposed else "false"
    return dialect.matrices[type(statement)].format(**parts)


def expr_source(expr: Expr, dialect: Dialect) -> str:
    match expr.op:
        case "const":
            return _constant(expr)
        case "var":
            return str(expr.value)
        case "uniform":
            return f"uniforms.{expr.value}"
        case "load" | "load4" | "shared":
            return f"{expr.value}[{expr_source(expr.args[0], dialect)}]"
        case "lane4":
            return f"{expr_source(expr.args[0], dialect)}.{'xyzw'[expr.value]}"
    args = [expr_source(arg, dialect) for arg in expr.args]
    return dialect.operations[expr.op].format(*args)


def _constant(expr: Expr) -> str:
    """Exact, and of a definite type."""
    if expr.dtype == "bool":
        return "true" if expr.value else "false"
    text = {"f32": f"{expr.value!r}f", "i32": str(expr.value), "u32": f"{expr.value}u"}[expr.dtype]
    return f"({text})" if text.startswith("-") else text
