"""What the blob store refuses; nothing is half-stored.

BlobError
├── BlobNotFound            no such blob, or not one that the asker may know of
├── BlobTooBig              more bytes than the reader allows
├── BlobHashMismatch        the bytes are not those that the hash names
├── RangeNotSatisfiable     a range that begins after the end
├── TokenError
│   ├── BlobTokenInvalid    missing, tampered with, or made for something else
│   └── BlobTokenExpired    was right, and is too old
└── UploadError
    ├── UploadHeaderInvalid  a header that is missing or makes no sense
    ├── UploadTooBig         more bytes than the address allows
    ├── UploadGap            bytes that do not join on to those received
    └── UploadUsedUp         one address has stored as many contents as it may
"""

from common.errors import NightshiftError


class BlobError(NightshiftError):
    code = "blob_error"


class BlobNotFound(BlobError):
    code = "blob_not_found"

    def __init__(self) -> None:
        super().__init__("There is no such blob: check its hash, and that the address was made for it.")


class BlobTooBig(BlobError):
    code = "blob_too_big"

    def __init__(self, *, size_bytes: int, max_bytes: int) -> None:
        super().__init__(f"The blob has {size_bytes} bytes, and only {max_bytes} are allowed here.")


class BlobHashMismatch(BlobError):
    code = "blob_hash_mismatch"

    def __init__(self) -> None:
        super().__init__(
            "The bytes do not have the SHA-256 announced: nothing is stored, upload them again from the start.",
            field="X-Content-SHA256",
        )


class RangeNotSatisfiable(BlobError):
    code = "range_not_satisfiable"

    def __init__(self, *, size_bytes: int) -> None:
        super().__init__(
            f"The blob has {size_bytes} bytes: ask for a range that begins among them.", field="Range"
        )
        self.size_bytes = size_bytes


class TokenError(BlobError):
    code = "blob_token_error"


class BlobTokenInvalid(TokenError):
    code = "blob_token_invalid"

    def __init__(self) -> None:
        super().__init__("This address is not valid: use it exactly as it was handed out.", field="token")


class BlobTokenExpired(TokenError):
    code = "blob_token_expired"

    def __init__(self) -> None:
        super().__init__("This address has expired: ask for a new one.", field="token")


class UploadError(BlobError):
    code = "upload_error"


class UploadHeaderInvalid(UploadError):
    code = "upload_header_invalid"


class UploadTooBig(UploadError):
    code = "upload_too_big"

    def __init__(self, *, size_bytes: int, max_bytes: int) -> None:
        super().__init__(f"The upload has {size_bytes} bytes, and at most {max_bytes} are taken here.")


class UploadUsedUp(UploadError):
    code = "upload_used_up"

    def __init__(self, *, contents: int) -> None:
        super().__init__(
            f"This address has stored {contents} contents and takes no other: ask for a new one."
        )


class UploadGap(UploadError):
    """`offset` is the first byte that is still missing."""

    code = "upload_gap"

    def __init__(self, *, offset: int) -> None:
        super().__init__(
            f"The upload has its first {offset} bytes: go on from byte {offset}.", field="Content-Range"
        )
        self.offset = offset
