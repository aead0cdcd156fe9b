"""The record of a run: one hash-chained line per event."""
