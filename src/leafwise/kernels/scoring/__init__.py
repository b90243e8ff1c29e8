"""Equation 5: log gamma functions of counts and exponents."""
