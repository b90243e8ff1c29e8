"""A page to explore a network, and a server on this machine that answers its questions."""
