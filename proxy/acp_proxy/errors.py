"""What acp-proxy raises on purpose. A peer's fault is never here: it becomes a finding or an answer."""

from __future__ import annotations


class AcpProxyError(Exception):
    """An error of ours whose text is fit to be shown to the person who ran the command."""


class ConfigError(AcpProxyError):
    """A setting is unknown or has the wrong type; the text names source, key and expected type."""


class AgentStartError(AcpProxyError):
    """The agent command cannot be started.

    `exit_status` is what the proxy exits with: 127 not found, 126 found but not executable.
    """

    def __init__(self, reason: str, exit_status: int) -> None:
        super().__init__(reason)
        self.reason = reason
        self.exit_status = exit_status


class PeerGoneError(AcpProxyError):
    """The peer closed its end: nothing can be written to it any more."""
