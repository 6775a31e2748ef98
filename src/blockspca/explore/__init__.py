"""A page in the browser, served by this process, to look at components by hand."""

from .run import Explorer, explore_table, run

__all__ = ["Explorer", "explore_table", "run"]
