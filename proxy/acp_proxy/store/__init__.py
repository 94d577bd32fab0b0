"""What outlives a run: the registry of sessions."""
