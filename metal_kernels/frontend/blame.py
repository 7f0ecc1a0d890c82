"""Whose line is it? Finds the submodule and the source line behind a traced operation or a failed trace."""

import contextlib
import re
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import torch
import torch.fx.traceback as fx_traceback
from torch import nn
from torch._subclasses.fake_tensor import DataDependentOutputException, DynamicOutputShapeException

from metal_kernels.errors import CaptureError, KernelError, UnsupportedOp, first_line
from metal_kernels.frontend.decompositions import instead_of
from metal_kernels.program.graph import DTYPE_NAMES

_META_KEY: Final = "module_path"
_LIBRARIES: Final = ("<", str(Path(torch.__file__).parent), str(Path(__file__).parents[1]))
_FRAME: Final = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+)')


class ModuleLocation:
    """Follows which submodule runs, marks the operations traced meanwhile, and explains a failure with it."""

    def __init__(self, module: nn.Module) -> None:
        self._running: list[tuple[str, contextlib.AbstractContextManager[None]]] = []
        for path, part in module.named_modules():
            part.register_forward_pre_hook(self._entering(path))
            part.register_forward_hook(self._leaving)

    def _entering(self, path: str) -> Any:
        def enter(_module: nn.Module, _arguments: object) -> None:
            mark = fx_traceback.annotate({_META_KEY: path})
            mark.__enter__()
            self._running.append((path, mark))

        return enter

    def _leaving(self, *_hook_arguments: object) -> None:
        _, mark = self._running.pop()
        mark.__exit__(None, None, None)

    @contextlib.contextmanager
    def blamed(self) -> Iterator[None]:
        """Turn whatever a trace raises into a `CaptureError` that names the submodule and line."""
        try:
            yield
        except KernelError:
            raise
        except (DataDependentOutputException, DynamicOutputShapeException) as error:
            raise unsupported(str(error.func), self._path(), _line_of(error)) from error
        # The module is somebody's code: it may raise anything.
        except Exception as error:
            place = _place(self._path(), _line_of(error))
            raise CaptureError(
                f"The module failed on the example inputs {place}: {first_line(error)}"
            ) from error
        finally:
            while self._running:
                self._leaving()

    def _path(self) -> str:
        return self._running[-1][0] if self._running else ""


def unsupported_node(node: torch.fx.Node, *, reason: str = "") -> UnsupportedOp:
    """The error for a traced node whose operation, or this form of it, no program may contain."""
    return unsupported(str(node.target), *_origin(node), reason=reason)


def unsupported_dtype(node: torch.fx.Node, dtype: torch.dtype) -> CaptureError:
    """The error for a traced node that makes values which no program may contain."""
    path, line = _origin(node)
    return CaptureError(
        f"The operation '{node.target}' used {_place(path, line)} makes {dtype} values; use one of "
        f"{', '.join(DTYPE_NAMES.values())}.",
        field=path,
    )


def _origin(node: torch.fx.Node) -> tuple[str, str | None]:
    """The submodule and the last source line outside the libraries that a node came from."""
    path = (node.meta.get("custom") or {}).get(_META_KEY, "")
    frames = _FRAME.findall(node.meta.get("stack_trace") or "")
    own = [f"{file}:{line}" for file, line in frames if not file.startswith(_LIBRARIES)]
    return path, own[-1] if own else None


def unsupported(op_name: str, path: str, line: str | None, *, reason: str = "") -> UnsupportedOp:
    because = f" ({reason.rstrip('.')})" if reason else ""
    return UnsupportedOp(
        f"The operation '{op_name}' used {_place(path, line)} cannot be captured{because}; {instead_of(op_name)}.",
        field=path,
    )


def _place(path: str, line: str | None) -> str:
    where = f"in submodule '{path}'" if path else "in the module itself"
    return f"{where} ({line})" if line else where


def _line_of(error: BaseException) -> str | None:
    frames = traceback.extract_tb(error.__traceback__)
    own = [
        f"{frame.filename}:{frame.lineno}" for frame in frames if not frame.filename.startswith(_LIBRARIES)
    ]
    return own[-1] if own else None
