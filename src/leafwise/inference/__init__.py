"""Inference in networks: queries, likelihood, sampling and analyses."""
