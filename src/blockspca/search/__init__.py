"""Is there a k-set above τ?  Exact searches, and when each is used."""
