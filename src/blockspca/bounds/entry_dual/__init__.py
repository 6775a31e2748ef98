"""The entry dual: opt(k) bounded by a matrix whose entries are moved towards zero."""
