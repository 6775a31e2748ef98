"""Where the tree of `schur_tree.py` keeps what, for all who look; without Numba."""

# Slots of the integer state, which lets a paused search go on where it stopped.
DEPTH, NODES, DEEPEST, PRUNED_FIRST, PRUNED_SUM, PRUNED_PEEL, LEAVES = range(7)
#: Size of the set that was found, entries that are needed, where the root ends, and
#: sets in the list
FOUND_SIZE, MEMORY, ROOT_STOP, LISTED = range(7, 11)
N_STATE = 11
#: Those that say how large a search was
STATISTICS = slice(NODES, LEAVES + 1)

# Planes of `bounds`.
FIRST, REST, REST2, NORM = range(4)
