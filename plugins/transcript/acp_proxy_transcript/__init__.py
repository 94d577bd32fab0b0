"""An acp-proxy plugin that writes what was said to a file people can read."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from acp_proxy.plugin import ConfigError, Plugin, Report
from acp_proxy_transcript.conversation import Conversation
from acp_proxy_transcript.file import TranscriptFile

__all__ = ["Transcript"]


class Transcript(Plugin):
    """Writes a readable transcript: prompts, answers, tool calls, permissions and states.

    Settings: `file`, the path, required; `append`, whether an existing file is continued, true unless
    said otherwise.
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        super().__init__(settings)
        for key in settings:
            if key not in ("file", "append"):
                raise ConfigError(f"unknown key {key}; there are file and append")
        path = settings.get("file")
        if not isinstance(path, str) or not path:
            raise ConfigError("file: expected the path of a file")
        append = settings.get("append", True)
        if not isinstance(append, bool):
            raise ConfigError("append: expected true or false")
        self._conversation = Conversation()
        self._file = TranscriptFile(path, append=append)
        self._file.write([f"Transcript of acp-proxy, {time.strftime('%Y-%m-%d %H:%M:%S %z')}"])

    def observe(self, report: Report) -> None:
        """Write what the report adds to the conversation; raises OSError when the file takes no more."""
        self._file.write(self._conversation.take(report))

    def close(self) -> None:
        """Write what was still being said, and close the file."""
        try:
            self._file.write(self._conversation.finish())
        finally:
            self._file.close()
