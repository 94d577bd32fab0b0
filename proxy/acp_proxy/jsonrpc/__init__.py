"""Bytes in, messages out, and back; knows JSON-RPC and nothing of ACP."""
