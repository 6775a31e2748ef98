"""Evidence for bounds: its records, the file, and its verification."""
