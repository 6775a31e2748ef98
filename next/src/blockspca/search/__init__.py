"""Exact search: one tree, for all that needs one."""
