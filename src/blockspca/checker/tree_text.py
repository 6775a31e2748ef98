"""Reads the text of a tree: docs/proof-format.md, section 5, and `N` of section 8."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from .fields import ProofError

WHOLE = re.compile(r"0|[1-9][0-9]{0,8}", re.ASCII)
DEEPEST = 300  # nodes within nodes; each is a call of a function


@dataclass(frozen=True)
class Node:
    """A token of a tree: its letter, the positions of an `S`, the number of an `N`."""

    letter: str
    opened: tuple[int, ...] = ()
    number: int = 0


class WrittenTree(NamedTuple):
    """A tree of a record, and what it is to show: no k-set of features exceeds U_k."""

    nodes: Sequence[Node]
    choices: int  # features that are chosen one after the other, at most
    k: int
    features: Sequence[int]
    uppers: dict[int, Any]  # U_j, a number of the arithmetic that reads the tree


def read_tree(
    text: str, size: int, where: str, added: int | None = None
) -> tuple[tuple[Node, ...], int]:
    """Return the tokens of one node with all its children, and how deep it goes.

    `added` is how many there are that an `N` may name; without it there is no `N`.
    """
    tokens = text.split(" ")
    nodes: list[Node] = []
    waiting = [1]  # nodes still to be read at each depth
    depth = at = 0
    while at < len(tokens) and waiting:
        token, at = tokens[at], at + 1
        number = int(token[1:]) if WHOLE.fullmatch(token[1:]) else -1
        if token in ("L", "P"):
            nodes.append(Node(token))
            waiting[-1] -= 1
        elif token == "D":
            nodes.append(Node(token))
        elif token[:1] == "N" and added is not None and 0 <= number < added:
            nodes.append(Node("N", number=number))
            waiting[-1] -= 1
        elif token[:1] == "S" and number >= 0:
            opened = tokens[at : at + number]
            at += number
            nodes.append(Node("S", _places(opened, number, size, token, where)))
            waiting[-1] -= 1
            waiting.append(number)
            depth = max(depth, len(waiting) - 1)
        else:
            raise ProofError(f"{where}: the token {token[:20]!r} is not known")
        while waiting and waiting[-1] == 0:
            waiting.pop()
        if depth > DEEPEST:
            raise ProofError(f"{where}: the tree is deeper than {DEEPEST}")
    if waiting or at != len(tokens):
        raise ProofError(f"{where}: the tree ends too early or too late")
    return tuple(nodes), depth


def _places(
    opened: list[str], count: int, size: int, token: str, where: str
) -> tuple[int, ...]:
    if not all(WHOLE.fullmatch(position) for position in opened):
        raise ProofError(f"{where}: positions are expected after {token}")
    places = tuple(map(int, opened))
    if len(places) != count or list(places) != sorted(set(places)):
        raise ProofError(f"{where}: ascending positions must follow {token}")
    if places and places[-1] >= size:
        raise ProofError(f"{where}: position {places[-1]} of {size} features")
    return places


def skip_node(nodes: Iterator[Node]) -> None:
    """Read one node, with its children, that need not hold."""
    waiting = 1
    while waiting:
        node = next(nodes)
        if node.letter != "D":
            waiting += len(node.opened) - 1
