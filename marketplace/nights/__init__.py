"""What each device did over the last hours, and why one earned nothing: `record` and `reasons` are pure."""
