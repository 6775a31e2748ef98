"""Rules for the features of a component: in or out, groups, one sign."""
