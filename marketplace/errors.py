"""Everything that the buyer's side refuses.

MarketplaceError
├── DatasetError
│   ├── DatasetUnreadable      the file is not what its name says, or is damaged
│   ├── DatasetUnsafe          it holds pickled objects, or unpacks to far more than it declares
│   ├── DatasetTooLarge        more bytes, members, columns or classes than are taken
│   ├── DatasetShape           arrays are missing, empty or do not belong together
│   ├── DatasetDtype           values are of a kind that cannot be trained on
│   ├── DatasetNotFinite       NaN or infinity in the data
│   ├── DatasetLabels          class indices out of range
│   ├── DatasetLimit           a person has as many as one may have
│   ├── DatasetInUse           a job still needs it
│   └── DatasetNotFound
├── ModelSpecInvalid           a model's parameters are out of bounds
├── ModelDoesNotFit            the model and the dataset do not belong together
├── InvoiceNotFound
├── ModelNotReady              there is no trained model to download yet
└── JobError
    ├── JobInvalid             a setting of the job cannot work
    ├── BudgetTooSmall         the budget does not pay for a single shard
    ├── QuotedJobLimit         a person has as many quotes as one may have
    ├── QuoteExpired           it was not confirmed in time
    ├── JobConflict            the job's state does not allow this now
    └── JobNotFound
"""

from common.errors import NightshiftError


class MarketplaceError(NightshiftError):
    code = "marketplace"


class DatasetError(MarketplaceError):
    code = "dataset"


class DatasetUnreadable(DatasetError):
    code = "dataset_unreadable"


class DatasetUnsafe(DatasetError):
    code = "dataset_unsafe"


class DatasetTooLarge(DatasetError):
    code = "dataset_too_large"


class DatasetShape(DatasetError):
    code = "dataset_shape"


class DatasetDtype(DatasetError):
    code = "dataset_dtype"


class DatasetNotFinite(DatasetError):
    code = "dataset_not_finite"


class DatasetLabels(DatasetError):
    code = "dataset_labels"


class DatasetLimit(DatasetError):
    code = "dataset_limit"


class DatasetInUse(DatasetError):
    code = "dataset_in_use"


class DatasetNotFound(DatasetError):
    code = "dataset_not_found"


class ModelSpecInvalid(MarketplaceError):
    code = "model_invalid"


class ModelDoesNotFit(MarketplaceError):
    code = "model_does_not_fit"


class ModelNotReady(MarketplaceError):
    code = "model_not_ready"


class InvoiceNotFound(MarketplaceError):
    code = "invoice_not_found"


class JobError(MarketplaceError):
    code = "job"


class JobInvalid(JobError):
    code = "job_invalid"


class BudgetTooSmall(JobError):
    code = "budget_too_small"


class QuotedJobLimit(JobError):
    code = "quoted_job_limit"


class QuoteExpired(JobError):
    code = "quote_expired"


class JobConflict(JobError):
    code = "job_conflict"


class JobNotFound(JobError):
    code = "job_not_found"
