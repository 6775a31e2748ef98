"""Upper bounds on the optimum, each a theorem."""
