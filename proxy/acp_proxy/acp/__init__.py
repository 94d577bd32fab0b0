"""What the two protocol versions say: names, shapes and vocabulary as tables, without state."""
