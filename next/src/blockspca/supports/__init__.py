"""Searches for good supports; they prove nothing."""
