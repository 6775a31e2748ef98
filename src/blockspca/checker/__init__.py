"""An independent checker of proofs: `python -m blockspca.checker PROOF DATA [--exact]`.

Written from docs/proof-format.md alone, without a look at the code that writes proofs.
It imports nothing else of blockspca, needs NumPy and Python's integers, never searches
and calls no LAPACK.
"""
