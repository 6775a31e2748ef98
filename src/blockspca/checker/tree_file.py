"""Reads the text of a tree: docs/proof-format.md, section 5."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .fields import ProofError

WHOLE = re.compile(r"0|[1-9][0-9]{0,8}")
DEEPEST = 300  # nodes within nodes; each is a call of a function


@dataclass(frozen=True)
class Node:
    """A token of a tree: its letter, and the positions that an `S` opens."""

    letter: str
    opened: tuple[int, ...] = ()
    number: int = 0  # of an `N`: which of the matrices that are added


def read_tree(
    text: str, size: int, where: str, added: int = 0
) -> tuple[tuple[Node, ...], int]:
    """Return the tokens of one node with all its children, and how deep it goes.

    Of positions there are `size`, and of matrices that an `N` may name `added`.
    """
    tokens = text.split(" ")
    nodes: list[Node] = []
    waiting = [1]  # nodes still to be read at each depth
    depth = at = 0
    while at < len(tokens) and waiting:
        token, at = tokens[at], at + 1
        if token in ("L", "P"):
            nodes.append(Node(token))
            waiting[-1] -= 1
        elif token[:1] == "N" and WHOLE.fullmatch(token[1:]) and int(token[1:]) < added:
            nodes.append(Node("N", number=int(token[1:])))
            waiting[-1] -= 1
        elif token == "D":
            nodes.append(Node(token))
        elif token[:1] == "S" and WHOLE.fullmatch(token[1:]):
            opened = tokens[at : at + int(token[1:])]
            at += int(token[1:])
            if not all(WHOLE.fullmatch(position) for position in opened):
                raise ProofError(f"{where}: positions are expected after {token}")
            places = tuple(map(int, opened))
            if len(places) != int(token[1:]) or list(places) != sorted(set(places)):
                raise ProofError(f"{where}: ascending positions must follow {token}")
            if places and places[-1] >= size:
                raise ProofError(f"{where}: position {places[-1]} of {size} features")
            nodes.append(Node("S", places))
            waiting[-1] -= 1
            waiting.append(len(places))
            depth = max(depth, len(waiting) - 1)
        else:
            raise ProofError(f"{where}: the token {token[:20]!r} is not known")
        while waiting and waiting[-1] == 0:
            waiting.pop()
    if waiting or at != len(tokens):
        raise ProofError(f"{where}: the tree ends too early or too late")
    if depth > DEEPEST:
        raise ProofError(f"{where}: the tree is deeper than {DEEPEST}")
    return tuple(nodes), depth
