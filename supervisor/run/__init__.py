"""A run: policy in, supervised tree, events and an exit code out."""
