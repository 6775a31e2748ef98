"""Checks proofs by itself: this package imports nothing but numpy and itself."""
