"""What steered deletes keep: one folder a session, and what can be done with it."""
