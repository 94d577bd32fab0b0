"""Where trio begins: byte streams to the client and the agent process."""
