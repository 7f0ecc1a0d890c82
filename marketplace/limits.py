"""What one person may have at a time, and how long a quote is kept."""

from datetime import timedelta

QUOTE_VALID = timedelta(days=7)
# Expired quotes dropped in one pass of the settler.
EXPIRED_AT_ONCE = 100
QUOTED_JOBS_MAX = 20
DATASETS_MAX = 100
