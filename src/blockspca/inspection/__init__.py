"""Looking at a solution: other sets as good, what each feature is worth, stability."""
