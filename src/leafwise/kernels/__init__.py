"""Jitted loops over plain arrays: the only door to numba."""
