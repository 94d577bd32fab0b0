"""One client and one agent joined, without input or output: events in, commands out."""
