"""Good supports, found cheaply: nothing is proved here."""
