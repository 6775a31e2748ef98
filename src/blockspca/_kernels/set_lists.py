"""Helpers of the tree in `schur_tree.py`: room in groups of features, lists of sets."""

from .options import INNER, njit
from .tree_layout import FOUND_SIZE, LISTED


@njit(**INNER)
def places_in(chosen, path, groups, g):
    """How many more of group g may follow the features of the first levels."""
    labels, orders, cursors = path
    group = groups.group
    places = groups.room[g]
    for h in range(chosen):
        if group[labels[h, orders[h, cursors[h] - 1]]] == g:
            places -= 1
    return places


@njit(**INNER)
def _list(level, path, last, also, listed, state):
    """Add the set of the levels above and the last two to the list; False if full."""
    labels, orders, cursors = path
    row = state[LISTED]
    if row >= listed.shape[0]:
        return False
    for h in range(level):
        listed[row, h] = labels[h, orders[h, cursors[h] - 1]]
    listed[row, level] = last
    listed[row, level + 1] = also
    state[LISTED] = row + 1
    return True


@njit(**INNER)
def list_singles(block, tau, level, t, count, path, group, full, listed, state):
    """List every set that the feature at t and one after it complete."""
    B, start, n = block
    labels, orders = path.labels, path.orders
    p = orders[level, t]
    remaining = tau - B[start + p * n + p]
    for b in range(t + 1, count):
        j = orders[level, b]
        if full >= 0 and group[labels[level, j]] == full:
            continue
        value = B[start + p * n + j]
        gain = value * value / remaining
        # Also what is no number: a list may be too long, never too short.
        above = remaining <= 0.0 or gain != gain or B[start + j * n + j] + gain > tau
        if above and not _list(
            level, path, labels[level, p], labels[level, j], listed, state
        ):
            return False
    return True


@njit(**INNER)
def list_pairs(block, tau, level, path, groups, listed, state):
    """List every set that a pair of the level completes."""
    B, begin, n = block
    labels, group = path.labels, groups.group
    for a in range(n):
        slack = tau - B[begin + a * n + a]
        g = group[labels[level, a]]
        for b in range(a):
            value = B[begin + a * n + b]
            other = tau - B[begin + b * n + b]
            if value * value <= slack * other and slack > 0.0 and other > 0.0:
                continue
            if (
                g >= 0
                and g == group[labels[level, b]]
                and places_in(level, path, groups, g) < 2
            ):
                continue
            if not _list(
                level, path, labels[level, a], labels[level, b], listed, state
            ):
                return False
    return True


@njit(**INNER)
def record_set(level, path, last, also, found, state):
    """Write the chosen features of the levels above and the last two to `found`."""
    labels, orders, cursors = path
    for h in range(level):
        found[h] = labels[h, orders[h, cursors[h] - 1]]
    found[level] = last
    found[level + 1] = also
    state[FOUND_SIZE] = level + 2


@njit(**INNER)
def pair_above(block, tau, level, path, groups):
    """a·n + b for a pair with λmax(B_{ab}) > τ that its group has room for, or −1."""
    B, begin, n = block
    labels, group = path.labels, groups.group
    for a in range(n):
        slack = tau - B[begin + a * n + a]
        for b in range(a):
            value = B[begin + a * n + b]
            if value * value > slack * (tau - B[begin + b * n + b]):
                g = group[labels[level, a]]
                if (
                    g < 0
                    or g != group[labels[level, b]]
                    or places_in(level, path, groups, g) > 1
                ):
                    return a * n + b
    return -1
