"""Rows and counts: a table laid out for counting, sets of cases, and their histograms."""
