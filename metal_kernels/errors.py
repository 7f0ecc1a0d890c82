"""Everything that can be wrong with a program, its capture or its run.

KernelError
├── CaptureError            the module cannot become a program
│   └── UnsupportedOp       it uses an operation outside the allow-list
├── ProgramError            a serialised program is not valid
├── DeltaError              an encoded parameter delta is not valid
└── RuntimeFailure          a valid program could not be run

`metal_kernels` stands alone, so these do not derive from the Django side's base; they follow the same shape: a
stable `code`, one sentence, an optional `field`.
"""
