"""Upper bounds on opt(k) that need no search for a support."""
