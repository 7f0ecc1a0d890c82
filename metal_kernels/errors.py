"""Everything that can be wrong with a program, its capture or its run.

KernelError
├── CaptureError            the module cannot become a program
│   └── UnsupportedOp       it uses an operation outside the allow-list
├── TensorFileError         bytes are not a valid safetensors file
├── ProgramError            a serialised program is not valid
│   ├── ProgramFormatError      not a program file, cut short, or of another version
│   ├── ProgramHashMismatch     not the bytes that were asked for
│   ├── ProgramTooLarge         past one of the reader's limits
│   ├── UnknownOp               an operation outside the allow-list
│   ├── BadArgument             an argument missing, too many, or of the wrong type
│   ├── BadReference            a name used before it is defined, never defined, or defined twice
│   └── SpecMismatch            a declared shape or dtype that does not follow from the operation
├── DeltaError              an encoded parameter delta is not valid
│   ├── DeltaFormatError        not a delta file, cut short, or of another version
│   ├── DeltaNameMismatch       a tensor is missing or unexpected
│   ├── DeltaShapeMismatch      a tensor has another shape or dtype than expected
│   └── DeltaNotFinite          NaN or infinity in a tensor or a scale
├── CompileError            a valid program cannot be turned into kernels
│   ├── UncompiledOp            it has an operation, or a form of one, that no rule covers
│   ├── KernelIrError           a pass made a kernel that breaks the rules of the kernel IR
│   └── DeviceLimitExceeded     the compiled program needs more than the device has
└── RuntimeFailure          a valid program could not be run
    ├── BadFeed                 the values given to it do not fit its inputs
    ├── RuntimeUnavailable      this machine lacks the GPU, driver or package that the runtime needs
    └── DeviceLost              the GPU gave up in the middle of a run

`metal_kernels` stands alone, so these do not derive from the Django side's base; they follow the same shape:
a stable `code`, one sentence, an optional `field`.
"""

# names say what went wrong; the bases say that they are errors

from typing import ClassVar


class KernelError(Exception):
    """Base of all errors of this package.

    `code` is stable and appears in APIs and logs; `message` is one sentence that says what is wrong and what
    to do; `field` names the input, node or tensor at fault, where there is one.
    """

    code: ClassVar[str] = "kernels"

    def __init__(self, message: str, *, field: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.field = field


def first_line(error: BaseException) -> str:
    """The first line of another library's error, short enough for a sentence."""
    return (str(error).strip() or type(error).__name__).split("\n")[0][:200]


class CaptureError(KernelError):
    code = "capture_failed"


class UnsupportedOp(CaptureError):
    """`field` is the path of the submodule that uses the operation ('' is the module itself)."""

    code = "unsupported_op"


class TensorFileError(KernelError):
    code = "tensor_file"


class ProgramError(KernelError):
    """`field` is the name of the first value that the faulty node, input or constant defines."""

    code = "program_invalid"


class ProgramFormatError(ProgramError):
    code = "program_format"


class ProgramHashMismatch(ProgramError):
    code = "program_hash"


class ProgramTooLarge(ProgramError):
    code = "program_too_large"


class UnknownOp(ProgramError):
    code = "program_unknown_op"


class BadArgument(ProgramError):
    code = "program_bad_argument"


class BadReference(ProgramError):
    code = "program_bad_reference"


class SpecMismatch(ProgramError):
    code = "program_spec_mismatch"


class DeltaError(KernelError):
    """`field` is the name of the tensor at fault."""

    code = "delta_invalid"


class DeltaFormatError(DeltaError):
    code = "delta_format"


class DeltaNameMismatch(DeltaError):
    code = "delta_names"


class DeltaShapeMismatch(DeltaError):
    code = "delta_shape"


class DeltaNotFinite(DeltaError):
    code = "delta_not_finite"


class CompileError(KernelError):
    code = "compile_failed"


class UncompiledOp(CompileError):
    """`field` is the name of the node."""

    code = "uncompiled_op"


class KernelIrError(CompileError):
    """`field` is the name of the kernel."""

    code = "kernel_ir"


class DeviceLimitExceeded(CompileError):
    """`field` is the limit's name."""

    code = "device_limit"


class RuntimeFailure(KernelError):
    code = "runtime_failure"


class BadFeed(RuntimeFailure):
    """`field` is the key of the input at fault."""

    code = "bad_feed"


class RuntimeUnavailable(RuntimeFailure):
    code = "runtime_unavailable"


class DeviceLost(RuntimeFailure):
    """The message names the kernels of the submission; `field` is the kernel if there was only one."""

    code = "device_lost"
