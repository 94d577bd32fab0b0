"""Standing inside a conductor: both legs over one stream, the agent behind `proxy/successor`."""
