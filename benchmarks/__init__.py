"""Benchmarks: `python -m benchmarks` lists and runs them. Each also checks its answer."""
