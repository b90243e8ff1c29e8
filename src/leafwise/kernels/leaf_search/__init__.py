"""Greedy search over the leaves of all nodes at once (Figure 5), compiled: what Python needs is a few calls."""
