"""Groups that do the same work on other tensors share a kernel, and only those."""

from metal_kernels.ir.expr import Tensor, read
from metal_kernels.ir.loops import Map, axes_of
from metal_kernels.passes.group import Group, layout_of
from metal_kernels.passes.pattern import pattern_of


def tensor(name: str, shape: tuple[int, ...] = (4, 8)) -> Tensor:
    return Tensor(name, "f32", shape)


def difference(result: Tensor, left: Tensor, right: Tensor) -> Group:
    axes = axes_of(result.shape)
    body = read(left, *axes) - read(right, *axes)
    return Group([Map(result, axes, body)], layout_of(result.shape, ()), {result: "full"})


A, B, C, X, Y, Z = (tensor(name) for name in "abcxyz")


def test_names_make_no_difference() -> None:
    first, tensors = pattern_of(difference(C, A, B), [C], {})
    second, others = pattern_of(difference(Z, X, Y), [Z], {})
    assert first == second
    assert dict(zip(tensors, others, strict=True)) == {A: X, B: Y, C: Z}


def test_one_tensor_read_twice_is_not_two_tensors() -> None:
    assert pattern_of(difference(C, A, A), [C], {})[0] != pattern_of(difference(C, A, B), [C], {})[0]


def test_what_is_kept_makes_a_difference() -> None:
    assert pattern_of(difference(C, A, B), [C], {})[0] != pattern_of(difference(C, A, B), [], {})[0]


def test_whose_memory_a_result_takes_makes_a_difference() -> None:
    over_left, over_right, apart = (
        pattern_of(difference(C, A, B), [C], in_place)[0] for in_place in ({C: A}, {C: B}, {})
    )
    assert len({over_left, over_right, apart}) == 3


def test_a_shape_makes_a_difference() -> None:
    small = [tensor(name, (4, 4)) for name in "abc"]
    smaller = difference(small[2], small[0], small[1])
    assert pattern_of(smaller, [small[2]], {})[0] != pattern_of(difference(C, A, B), [C], {})[0]
