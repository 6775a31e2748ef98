"""An independent checker of proofs: `python -m blockspca.checker PROOF DATA [--exact]`.

It was written from the format page, the earlier checker's part for versions 1 to 4
(itself written from the page by somebody who had not seen the code that writes proofs)
and sample proofs that are accepted or refused; since then it has been changed from the
page alone, but for two margins against underflow and the answer to a missing file,
which were added by people who knew the rest of the library.

It imports nothing else of blockspca, needs NumPy and Python's integers, never searches
and calls no LAPACK.
"""
