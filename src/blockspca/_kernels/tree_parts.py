"""Named tuples of arrays that the functions of a tree share."""

from typing import Any, NamedTuple


class Block(NamedTuple):
    """A matrix of order n in the flat memory B: its entry (i, j) is B[start + i n + j].

    Functions that are called for a row or an entry take B itself: each array that is
    taken out of a tuple is counted.
    """

    B: Any
    start: Any
    n: Any


class Path(NamedTuple):
    """How the tree came to where it is: level l has chosen orders[l, cursors[l] − 1].

    `labels` has the column of A for each column of a level.
    """

    labels: Any
    orders: Any
    cursors: Any


class Groups(NamedTuple):
    """The group of each column of A, −1 for none, and the room that each has."""

    group: Any
    room: Any


class Scratch(NamedTuple):
    """Arrays that hold nothing from one call to the next."""

    keys: Any
    squares: Any
    table: Any
    fresh: Any
