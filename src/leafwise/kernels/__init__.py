"""Jitted loops over plain arrays: the only module that imports numba."""
