"""Rules, deadlines and ladders an operator sets: what happens when nobody decides, or decides by rule."""
