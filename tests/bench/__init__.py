"""Benchmarks: each suite measures beside a reference in one run. `make bench SUITE=name`, or all of them."""
