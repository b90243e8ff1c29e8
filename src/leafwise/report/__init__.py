"""Networks for people to read."""
