"""Rows and counts: a table laid out for counting, sets of cases, and histograms of them."""
