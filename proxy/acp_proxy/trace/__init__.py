"""Recordings of traffic: their format, and the recorder that writes them."""
