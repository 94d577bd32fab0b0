"""The bundled legacy agent and v2 client that `acp-proxy demo` runs."""
