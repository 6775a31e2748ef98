"""Good supports, found before any proof; nothing is proved here."""
