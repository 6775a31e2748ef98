"""What the tree of `schur_tree.py` knows of its sets: room in groups, lists of sets.

A cached kernel does not notice an edit to a helper in another file by itself;
`options.py` puts a hash of all sources into its name.
"""

from .options import INNER, njit

# Slots of the state of a search: the size of what was found, sets in its list
FOUND_SIZE, LISTED = 7, 10


@njit(**INNER)
def places_in(chosen, orders, cursors, labels, group, room, g):
    """How many more of group g may follow the features of the first levels."""
    places = room[g]
    for h in range(chosen):
        if group[labels[h, orders[h, cursors[h] - 1]]] == g:
            places -= 1
    return places


@njit(**INNER)
def _list(level, orders, cursors, labels, last, also, listed, state):
    """Add the set of the levels above and the last two to the list; False if full."""
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
def list_singles(
    B, start, n, t, tau, level, count, orders, cursors, labels, group, full, listed,
    state,
):  # fmt: skip
    """List every set that the feature at t and one after it complete."""
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
            level, orders, cursors, labels, labels[level, p], labels[level, j], listed,
            state,
        ):  # fmt: skip
            return False
    return True


@njit(**INNER)
def list_pairs(
    B, begin, n, tau, level, orders, cursors, labels, group, room, listed, state
):
    """List every set that a pair of the level completes."""
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
                and places_in(level, orders, cursors, labels, group, room, g) < 2
            ):
                continue
            if not _list(
                level, orders, cursors, labels, labels[level, a], labels[level, b],
                listed, state,
            ):  # fmt: skip
                return False
    return True


@njit(**INNER)
def record_set(level, orders, cursors, labels, last, also, found, state):
    """Write the chosen features of the levels above and the last two to `found`."""
    for h in range(level):
        found[h] = labels[h, orders[h, cursors[h] - 1]]
    found[level] = last
    found[level + 1] = also
    state[FOUND_SIZE] = level + 2


@njit(**INNER)
def pair_above(B, begin, n, tau, level, orders, cursors, labels, group, room):
    """a·n + b for a pair with λmax(B_{ab}) > τ that its group has room for, or −1."""
    for a in range(n):
        slack = tau - B[begin + a * n + a]
        for b in range(a):
            value = B[begin + a * n + b]
            if value * value > slack * (tau - B[begin + b * n + b]):
                g = group[labels[level, a]]
                if (
                    g < 0
                    or g != group[labels[level, b]]
                    or places_in(level, orders, cursors, labels, group, room, g) > 1
                ):
                    return a * n + b
    return -1
