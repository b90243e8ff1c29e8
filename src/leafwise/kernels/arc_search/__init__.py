"""Search over arcs with complete tables: counts, cached scores of nodes, moves, and hill climbing."""
