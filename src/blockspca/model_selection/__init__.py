"""Choosing k: a reference without correlations, cross-validation."""
