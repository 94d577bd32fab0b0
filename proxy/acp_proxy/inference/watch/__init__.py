"""Tells breaches of the lifecycle (§3) in what passes; decides nothing about them."""
