"""Protocol v1 to v2 and back, one file a subject; the stateful adapters are one a pairing."""
