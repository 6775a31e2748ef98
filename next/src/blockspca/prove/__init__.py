"""Provers: screening, and the chain of bounds on opt(1), …, opt(k)."""
