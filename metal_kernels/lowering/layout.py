"""Operations that move elements without changing them: every one is an index."""

from typing import Final

from metal_kernels.ir.expr import Expr, cast, clamp, const, flatten, unflatten, where
from metal_kernels.lowering.context import Call, Rule, Source
from metal_kernels.lowering.indices import IndexedDims, clamped_index


def _view(call: Call) -> None:
    source, output = call.source("self"), call.output()
    call.define_map(output, lambda *at: source.at(*unflatten(flatten(at, output.shape), source.shape)))


def _permute(call: Call) -> None:
    source, dims = call.source("self"), call["dims"]
    call.define_map(
        call.output(), lambda *at: source.at(*(at[dims.index(axis)] for axis in range(len(dims))))
    )


def _expand(call: Call) -> None:
    source = call.source("self")
    call.define_map(call.output(), lambda *at: source.broadcast(at))


def _slice(call: Call) -> None:
    source, dim, start, step = call.source("self"), call["dim"], call["start"], call["step"]
    call.define_map(call.output(), lambda *at: source.at(*at[:dim], at[dim] * step + start, *at[dim + 1 :]))


def _select(call: Call) -> None:
    source, dim, index = call.source("self"), call["dim"], const(call["index"], "i32")
    call.define_map(call.output(), lambda *at: source.at(*at[:dim], index, *at[dim:]))


def _flip(call: Call) -> None:
    source, dims = call.source("self"), call["dims"]
    call.define_map(
        call.output(),
        lambda *at: source.at(
            *(source.shape[axis] - 1 - index if axis in dims else index for axis, index in enumerate(at))
        ),
    )


def _repeat(call: Call) -> None:
    source = call.source("self")
    skipped = len(call.output().shape) - len(source.shape)
    call.define_map(
        call.output(),
        lambda *at: source.at(
            *(index % extent for index, extent in zip(at[skipped:], source.shape, strict=True))
        ),
    )


def _cat(call: Call) -> None:
    dim = call["dim"]
    parts = [part for part in call.sources("tensors") if part.tensor.elements]

    def body(*at: Expr) -> Expr:
        def element(part: Source, start: int) -> Expr:
            return part.at(*at[:dim], clamp(at[dim] - start, 0, part.shape[dim] - 1), *at[dim + 1 :])

        value, start = element(parts[0], 0), parts[0].shape[dim]
        for part in parts[1:]:
            value = where(at[dim] < start, value, element(part, start))
            start += part.shape[dim]
        return value

    call.define_map(call.output(), body)


def _full(call: Call) -> None:
    output = call.output()
    call.define_map(output, lambda *at: const(float(call["fill_value"]), output.dtype))


def _arange(call: Call) -> None:
    output = call.output()
    start, step = call["start"], call["step"]
    call.define_map(output, lambda at: cast(at, output.dtype) * step + start)


def _pad(call: Call) -> None:
    source, output = call.source("self"), call.output()
    pads = list(call["pad"])
    before = [pads[2 * position] if 2 * position < len(pads) else 0 for position in range(len(output.shape))][
        ::-1
    ]
    fill = call.number("value")
    call.define_map(
        output,
        lambda *at: source.padded(*(index - pad for index, pad in zip(at, before, strict=True)), fill=fill),
    )


def _gather(call: Call) -> None:
    source, index, dim = call.source("self"), call.source("index"), call["dim"]
    call.require(bool(source.shape and index.shape), "works on a single number")

    def body(*at: Expr) -> Expr:
        chosen = clamped_index(index.at(*at), source.shape[dim])
        return source.at(*at[:dim], chosen, *at[dim + 1 :])

    call.define_map(call.output(), body)


def _index_select(call: Call) -> None:
    source, index, dim = call.source("self"), call.source("index"), call["dim"]
    call.require(bool(source.shape and index.shape), "works on a single number")

    def body(*at: Expr) -> Expr:
        return source.at(*at[:dim], clamped_index(index.at(at[dim]), source.shape[dim]), *at[dim + 1 :])

    call.define_map(call.output(), body)


def _embedding(call: Call) -> None:
    weight, indices = call.source("weight"), call.source("indices")
    call.define_map(
        call.output(), lambda *at: weight.at(clamped_index(indices.at(*at[:-1]), weight.shape[0]), at[-1])
    )


def _index(call: Call) -> None:
    """Advanced indexing by integer tensors."""
    source = call.source("self")
    dims = IndexedDims.of(call, source)
    call.define_map(call.output(), lambda *at: source.at(*dims.source_at(at)))


def _slice_scatter(call: Call) -> None:
    """A copy of `self` with a slice of it replaced by `src`."""
    old, new, dim, step = call.source("self"), call.source("src"), call["dim"], call["step"]
    extent = old.shape[dim]
    start, stop, _ = slice(call["start"], call["end"]).indices(extent)

    def body(*at: Expr) -> Expr:
        offset = clamp(at[dim] - start, 0, extent)
        inside = (at[dim] >= start) & (at[dim] < stop) & (offset % step).equals(0)
        place = clamp(offset // step, 0, max(new.shape[dim] - 1, 0))
        return where(inside, new.at(*at[:dim], place, *at[dim + 1 :]), old.at(*at))

    call.define_map(call.output(), body)


RULES: Final[dict[str, Rule]] = {
    "aten.view.default": _view,
    "aten.unsqueeze.default": _view,
    "aten.squeeze.dims": _view,
    "aten.permute.default": _permute,
    "aten.expand.default": _expand,
    "aten.slice.Tensor": _slice,
    "aten.select.int": _select,
    "aten.flip.default": _flip,
    "aten.repeat.default": _repeat,
    "aten.cat.default": _cat,
    "aten.full.default": _full,
    "aten.arange.start_step": _arange,
    "aten.constant_pad_nd.default": _pad,
    "aten.gather.default": _gather,
    "aten.index_select.default": _index_select,
    "aten.index.Tensor": _index,
    "aten.embedding.default": _embedding,
    "aten.slice_scatter.default": _slice_scatter,
}
