"""Inference: walks through graphs, elimination, contraction, sampling."""
