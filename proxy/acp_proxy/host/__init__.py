"""What the proxy does on its own machine in a client's place: files and commands (`bridge.serve`)."""
