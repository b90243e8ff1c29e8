"""Display of networks: text, tables and pictures."""
