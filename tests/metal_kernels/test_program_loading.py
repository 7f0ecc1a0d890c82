"""A program file is checked in full before anything of it runs; each fault is one clear error."""

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from metal_kernels.errors import (
    BadArgument,
    BadReference,
    ProgramError,
    ProgramFormatError,
    ProgramHashMismatch,
    ProgramTooLarge,
    SpecMismatch,
    UnknownOp,
)
from metal_kernels.program.format import program_dumps, program_loads, program_sha256
from metal_kernels.program.graph import Program
from metal_kernels.program.validate import DEFAULT_LIMITS, Limits
from metal_kernels.tensorfile import tensorfile_dumps, tensorfile_loads

Graph = dict[str, Any]


def edited(program: Program, edit: Callable[[Graph], object], **metadata: str) -> bytes:
    """The program's file after `edit` changed its graph in place."""
    file = tensorfile_loads(program_dumps(program))
    graph = json.loads(file.metadata["graph"])
    edit(graph)
    return tensorfile_dumps(file.tensors, metadata={**file.metadata, "graph": json.dumps(graph), **metadata})


def node_of(graph: Graph, op: str) -> Graph:
    return next(node for node in graph["nodes"] if node["op"] == op)


def test_a_program_survives_the_round_trip(mlp_program, cnn_program):
    for program in (mlp_program, cnn_program):
        data = program_dumps(program)
        loaded = program_loads(data, expected_sha256=program_sha256(data))
        assert loaded.graph == program.graph
        assert program_dumps(loaded) == data


def test_the_file_is_a_safetensors_file_for_the_library_too(mlp_program, tmp_path):
    from safetensors import safe_open

    path = tmp_path / "program.safetensors"
    path.write_bytes(program_dumps(mlp_program))
    with safe_open(path, "pt") as file:
        assert file.metadata()["format"] == "nightshift.program"
        assert set(file.keys()) == set(mlp_program.constants)


def test_other_bytes_than_asked_for_are_refused(mlp_forward):
    with pytest.raises(ProgramHashMismatch):
        program_loads(program_dumps(mlp_forward), expected_sha256="0" * 64)


@pytest.mark.parametrize("length", [0, 7, 8, 100, -1])
def test_a_truncated_file_is_refused(mlp_forward, length):
    with pytest.raises(ProgramFormatError):
        program_loads(program_dumps(mlp_forward)[:length])


@pytest.mark.parametrize(
    "metadata",
    [
        {"format": "nightshift.delta"},
        {"version": "2"},
        {"graph": "{"},
        *({"delta_bits": bits} for bits in ("8", "3", "", "4 ", "\u0664")),
    ],
)
def test_another_format_version_no_graph_or_bits_that_nobody_sends_are_refused(mlp_forward, metadata):
    with pytest.raises(ProgramFormatError):
        program_loads(edited(mlp_forward, lambda graph: None, **metadata))


def drop_bias(graph: Graph) -> None:
    del node_of(graph, "aten.addmm.default")["args"]["alpha"]


def add_device(graph: Graph) -> None:
    node_of(graph, "aten.addmm.default")["args"]["device"] = "cuda"


def text_for_number(graph: Graph) -> None:
    node_of(graph, "aten.addmm.default")["args"]["alpha"] = "one"


def number_for_tensor(graph: Graph) -> None:
    node_of(graph, "aten.addmm.default")["args"]["mat1"] = 3


def flag_for_integers(graph: Graph) -> None:
    node_of(graph, "aten.permute.default")["args"]["dims"] = [True, False]


def huge_integer(graph: Graph) -> None:
    node_of(graph, "aten.permute.default")["args"]["dims"] = [2**60, 0]


@pytest.mark.parametrize(
    "edit", [drop_bias, add_device, text_for_number, number_for_tensor, flag_for_integers, huge_integer]
)
def test_missing_unknown_and_mistyped_arguments_are_refused(mlp_forward, edit):
    with pytest.raises(BadArgument, match="Node 'v"):
        program_loads(edited(mlp_forward, edit))


@pytest.mark.parametrize("op", ["os.system", "aten.bernoulli.p", "aten.add_.Tensor", "__import__('os')", ""])
def test_an_operation_outside_the_allow_list_is_refused(mlp_forward, op):
    with pytest.raises(UnknownOp, match="Node 'v0'"):
        program_loads(edited(mlp_forward, lambda graph: graph["nodes"][0].update(op=op)))


def use_of_nothing(graph: Graph) -> None:
    node_of(graph, "aten.relu.default")["args"]["self"] = {"ref": "nothing"}


def use_of_itself(graph: Graph) -> None:
    node = node_of(graph, "aten.relu.default")
    node["args"]["self"] = {"ref": node["outputs"][0]["name"]}


def nodes_in_reverse(graph: Graph) -> None:
    graph["nodes"].reverse()


def one_name_twice(graph: Graph) -> None:
    graph["nodes"][1]["outputs"][0]["name"] = graph["nodes"][0]["outputs"][0]["name"]


def one_input_twice(graph: Graph) -> None:
    graph["inputs"][1]["key"] = graph["inputs"][0]["key"]


def output_of_nothing(graph: Graph) -> None:
    graph["outputs"][0]["value"] = "nothing"


def new_state_without_old(graph: Graph) -> None:
    graph["outputs"].append({"role": "buffer", "key": "mean", "value": "in0"})


@pytest.mark.parametrize(
    "edit",
    [
        use_of_nothing,
        use_of_itself,
        nodes_in_reverse,
        one_name_twice,
        one_input_twice,
        output_of_nothing,
        new_state_without_old,
    ],
)
def test_undefined_repeated_and_circular_names_are_refused(mlp_forward, edit):
    with pytest.raises(BadReference):
        program_loads(edited(mlp_forward, edit))


def wrong_shape(graph: Graph) -> None:
    node_of(graph, "aten.relu.default")["outputs"][0]["shape"] = [16, 33]


def wrong_dtype(graph: Graph) -> None:
    node_of(graph, "aten.relu.default")["outputs"][0]["dtype"] = "int64"


def wrong_operand(graph: Graph) -> None:
    node_of(graph, "aten.addmm.default")["args"]["mat2"] = {"ref": "in0"}


def too_many_outputs(graph: Graph) -> None:
    node_of(graph, "aten.relu.default")["outputs"].append(None)


def empty_input(graph: Graph) -> None:
    graph["inputs"][0]["value"]["shape"] = [0, 64]


def negative_input(graph: Graph) -> None:
    graph["inputs"][0]["value"]["shape"] = [-1, 64]


@pytest.mark.parametrize(
    "edit", [wrong_shape, wrong_dtype, wrong_operand, too_many_outputs, empty_input, negative_input]
)
def test_a_shape_or_dtype_that_does_not_follow_is_refused(mlp_forward, edit):
    with pytest.raises(SpecMismatch):
        program_loads(edited(mlp_forward, edit))


def foreign_pooling_indices(graph: Graph) -> None:
    shape = [4, 8, 4, 4]
    value = {"name": "evil", "dtype": "int64", "shape": shape}
    graph["inputs"].append({"role": "input", "key": "input1", "value": value})
    node_of(graph, "aten.max_pool2d_with_indices_backward.default")["args"]["indices"] = {"ref": "evil"}


def other_pooling(graph: Graph) -> None:
    node_of(graph, "aten.max_pool2d_with_indices_backward.default")["args"]["padding"] = [1, 1]


def no_groups(graph: Graph) -> None:
    node_of(graph, "aten.convolution_backward.default")["args"]["groups"] = 0


def no_stride(graph: Graph) -> None:
    node_of(graph, "aten.convolution.default")["args"]["stride"] = [0, 0]


def other_gradient(graph: Graph) -> None:
    node_of(graph, "aten.convolution_backward.default")["args"]["padding"] = [0, 0]


@pytest.mark.parametrize(
    "edit", [foreign_pooling_indices, other_pooling, no_groups, no_stride, other_gradient]
)
def test_arguments_that_a_kernel_would_trust_are_checked(cnn_program, edit):
    with pytest.raises(SpecMismatch):
        program_loads(edited(cnn_program, edit))


@pytest.mark.parametrize(
    "limits",
    [
        Limits(file_bytes=100),
        Limits(tensor_bytes=1000),
        Limits(nodes=3),
        Limits(values=5),
        Limits(dimensions=1),
        Limits(list_items=1),
        Limits(name_chars=1),
    ],
)
def test_a_program_past_a_limit_is_refused(mlp_forward, limits):
    with pytest.raises(ProgramTooLarge):
        program_loads(program_dumps(mlp_forward), limits=limits)


def test_constants_past_the_limit_are_refused(mlp_forward):
    def declare(graph: Graph) -> None:
        graph["constants"].append({"name": "c0", "dtype": "float32", "shape": [100]})

    file = tensorfile_loads(edited(mlp_forward, declare))
    data = tensorfile_dumps({"c0": torch.zeros(100)}, metadata=file.metadata)
    assert program_loads(data).constants["c0"].shape == (100,)
    with pytest.raises(ProgramTooLarge):
        program_loads(data, limits=replace(DEFAULT_LIMITS, constant_bytes=399))
    with pytest.raises(ProgramFormatError):
        program_loads(tensorfile_dumps({}, metadata=file.metadata))
    with pytest.raises(SpecMismatch):
        program_loads(tensorfile_dumps({"c0": torch.zeros(99)}, metadata=file.metadata))


def test_a_forward_program_takes_no_target_and_a_training_step_returns_a_loss(mlp_forward, mlp_program):
    with pytest.raises(BadReference):
        program_loads(edited(mlp_forward, lambda graph: graph["inputs"][-1].update(role="target")))
    with pytest.raises(ProgramFormatError):
        program_loads(edited(mlp_forward, lambda graph: graph.update(kind="training_step")))
    with pytest.raises(BadReference):
        program_loads(edited(mlp_program, lambda graph: graph["inputs"][-1].update(key="epoch")))


_fuzzing = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@_fuzzing
@given(data=st.data())
def test_flipped_and_cut_bytes_raise_nothing_but_program_errors(mlp_forward, data):
    original = bytearray(program_dumps(mlp_forward))
    for _ in range(data.draw(st.integers(1, 4))):
        original[data.draw(st.integers(0, len(original) - 1))] = data.draw(st.integers(0, 255))
    end = data.draw(st.one_of(st.just(len(original)), st.integers(0, len(original))))
    with suppress(ProgramError):
        loaded = program_loads(bytes(original[:end]))
        assert loaded.graph.nodes


_LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 2**40),
    st.floats(),
    st.sampled_from(["in0", "v1", "float32", "NaN"]),
)


@_fuzzing
@given(data=st.data())
def test_arbitrary_arguments_raise_nothing_but_program_errors(cnn_program, data):
    def edit(graph: Graph) -> None:
        node = data.draw(st.sampled_from(graph["nodes"]))
        name = data.draw(st.sampled_from(sorted(node["args"])))
        node["args"][name] = data.draw(st.one_of(_LEAVES, st.lists(st.integers(-2, 9), max_size=5)))

    with suppress(ProgramError):
        loaded = program_loads(edited(cnn_program, edit))
        assert loaded.graph.nodes
