"""Searches for high-scoring networks. They meet the data only through a counter."""
