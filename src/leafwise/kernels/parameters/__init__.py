"""Distributions of leaves: drawn towards each other, averaged over prunings; mixtures by EM."""
