"""What is true now: reads messages, changes none."""
