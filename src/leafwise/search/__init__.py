"""Searches for high-scoring networks. They access the data only through a counter."""
