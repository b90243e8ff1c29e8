"""Compilation with numba: decorators, references to many arrays, atomics, and instructions on words."""
