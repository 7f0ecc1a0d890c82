"""Views cost nothing: index arithmetic collapses, and what it collapses to has the same value everywhere."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metal_kernels.ir.expr import Expr, apply, const, flatten, index_var, nodes, unflatten
from metal_kernels.ir.scalars import SCALAR_OPS

EXTENTS = {"a": 4, "b": 6, "c": 5}
VARIABLES = [index_var(name, extent) for name, extent in EXTENTS.items()]


def evaluate(root: Expr, values: dict[str, int]) -> int:
    known: dict[Expr, int] = {}
    for node in nodes(root):
        if node.op == "const":
            known[node] = node.value
        elif node.op == "var":
            known[node] = values[node.value]
        else:
            known[node] = int(SCALAR_OPS[node.op].numpy(*(known[arg] for arg in node.args)))
    return known[root]


Plain = tuple[str, tuple["Plain", ...]] | str | int


def plain_value(plain: Plain, values: dict[str, int]) -> int:
    if isinstance(plain, int):
        return plain
    if isinstance(plain, str):
        return values[plain]
    op, args = plain
    return int(SCALAR_OPS[op].numpy(*(plain_value(arg, values) for arg in args)))


def expression(plain: Plain) -> Expr:
    if isinstance(plain, int):
        return const(plain, "i32")
    if isinstance(plain, str):
        return index_var(plain, EXTENTS[plain])
    op, args = plain
    return apply(op, *(expression(arg) for arg in args))


LEAVES = st.one_of(st.sampled_from(list(EXTENTS)), st.integers(0, 7))
PLAIN: st.SearchStrategy[Plain] = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.tuples(st.sampled_from(["add", "min", "max"]), st.tuples(inner, inner)),
        st.tuples(st.just("mul"), st.tuples(inner, st.integers(0, 6))),
        st.tuples(st.sampled_from(["idiv", "mod"]), st.tuples(inner, st.integers(1, 12))),
    ),
    max_leaves=8,
)


@settings(max_examples=150, deadline=None)
@given(PLAIN)
def test_canonical_arithmetic_has_the_same_value_and_stays_in_its_range(plain: Plain) -> None:
    canonical = expression(plain)
    for place in itertools.product(*(range(0, extent, 2) for extent in EXTENTS.values())):
        values = dict(zip(EXTENTS, place, strict=True))
        found = evaluate(canonical, values)
        assert found == plain_value(plain, values)
        assert canonical.low <= found <= canonical.high


@pytest.mark.parametrize("shape", [(4, 30), (24, 5), (2, 2, 30), (8, 3, 5), (120,)])
def test_reshaping_there_and_back_is_no_arithmetic_at_all(shape: tuple[int, ...]) -> None:
    flat = index_var("flat", 120)
    assert flatten(unflatten(flat, shape), shape) is flat


def test_splitting_an_axis_that_was_joined_gives_the_axis() -> None:
    a, b, _ = VARIABLES
    joined = flatten((a, b), (4, 6))
    assert unflatten(joined, (4, 6)) == (a, b)
    assert joined // 12 is a // 2


def test_comparisons_that_ranges_decide_are_constants() -> None:
    a = index_var("a", 4)
    assert (a < 4).is_const
    assert not (a < 3).is_const
    assert (a + 3 >= 3) is const(1, "bool")


def test_equal_expressions_are_one_object() -> None:
    a, b, c = VARIABLES
    assert (a + b) + c is c + (b + a)
    assert a * 6 + b - b is a * 6
