// What can be wrong with a file, a program or its run. Codes are those of metal_kernels/errors.py.
//
// KernelError
// ├── TensorFileError        bytes are not a valid safetensors file
// ├── ProgramError           a compiled program is not valid
// │   ├── ProgramFormatError     not a program file, cut short, or of another version
// │   ├── ProgramHashMismatch    not the bytes that were asked for
// │   ├── ProgramTooLarge        past one of the reader's limits
// │   ├── BadReference           a name or position of something that does not exist
// │   └── SpecMismatch           sizes that do not fit each other
// ├── DeltaError             a parameter delta cannot be encoded
// │   └── DeltaNotFinite         NaN or infinity in a tensor
// ├── DeviceLimitExceeded    the program needs more than the device has
// └── RuntimeFailure         a valid program could not be run
//     ├── BadFeed                the values given to it do not fit its inputs
//     ├── RuntimeUnavailable     this browser or machine has no WebGPU that will do
//     └── DeviceLost             the GPU gave up in the middle of a run

// `message` is one sentence that says what is wrong and what to do; `field` names the tensor, buffer or kernel at
// fault, where there is one.
export class KernelError extends Error {
  static code = "kernels";

  constructor(message, field = null) {
    super(message);
    this.name = this.constructor.name;
    this.code = this.constructor.code;
    this.field = field;
  }
}

export class TensorFileError extends KernelError { static code = "tensor_file"; }

export class ProgramError extends KernelError { static code = "program_invalid"; }
export class ProgramFormatError extends ProgramError { static code = "program_format"; }
export class ProgramHashMismatch extends ProgramError { static code = "program_hash"; }
export class ProgramTooLarge extends ProgramError { static code = "program_too_large"; }
export class BadReference extends ProgramError { static code = "program_bad_reference"; }
export class SpecMismatch extends ProgramError { static code = "program_spec_mismatch"; }

export class DeltaError extends KernelError { static code = "delta_invalid"; }
export class DeltaNotFinite extends DeltaError { static code = "delta_not_finite"; }

export class DeviceLimitExceeded extends KernelError { static code = "device_limit"; }

export class RuntimeFailure extends KernelError { static code = "runtime_failure"; }
export class BadFeed extends RuntimeFailure { static code = "bad_feed"; }
export class RuntimeUnavailable extends RuntimeFailure { static code = "runtime_unavailable"; }
export class DeviceLost extends RuntimeFailure { static code = "device_lost"; }
