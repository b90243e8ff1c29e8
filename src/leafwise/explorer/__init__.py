"""An interactive page to explore a network, and a local server for its queries."""
