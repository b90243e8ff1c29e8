"""Distributions of leaves: smoothed, or averaged over prunings; mixtures by EM."""
