"""Questions to a network: likelihood and sampling."""
