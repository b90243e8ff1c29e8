"""Kernels for inference: walks through graphs, elimination, contraction, sampling."""
