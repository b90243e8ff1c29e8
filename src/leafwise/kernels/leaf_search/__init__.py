"""Greedy search over the leaves of all nodes at once (Figure 5), compiled: Python only makes a few calls."""
