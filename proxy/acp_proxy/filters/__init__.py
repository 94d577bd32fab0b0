"""What may change a message on its way through; no input or output."""
