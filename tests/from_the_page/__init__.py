"""A second checker, written from docs/proof-format.md alone, for tests.

Who wrote it had seen the page, the first checker's part for versions 1 to 4 and proofs
that are accepted or refused, and none of the code that writes proofs. What both accept
has been read twice; it is not part of the library.
"""
