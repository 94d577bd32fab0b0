"""Recognizes an agent's own echo of a prompt that was already echoed for it (bridge §5, step 7)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from acp_proxy.jsonrpc.message import Json


class EchoMatch:
    """Holds user chunks back while they spell the prompt; gives them up when they turn out not to.

    Neighboring text blocks count as one text, however the agent cuts its chunks.
    """

    __slots__ = ("_at", "_held", "_offset", "_parts")

    def __init__(self, prompt: Sequence[Any]) -> None:
        self._parts: list[Any] = []
        for block in prompt:
            text = _text(block)
            if text is None:
                self._parts.append(block)
            elif self._parts and type(self._parts[-1]) is str:
                self._parts[-1] += text
            elif text:
                self._parts.append(text)
        self._at = 0
        self._offset = 0
        self._held: list[Json] = []

    def take(self, params: Json, content: Any) -> list[Json]:
        """Take a chunk's notification parameters; return those that must be told after all."""
        if self._matches(content):
            self._held.append(params)
            if self._at == len(self._parts):
                self._held.clear()
            return []
        return [*self.release(), params]

    @property
    def pending(self) -> bool:
        """Whether chunks are held back that do not spell the whole prompt yet."""
        return bool(self._held)

    def release(self) -> list[Json]:
        """Nothing more of the echo will come: what was held back unfinished is told."""
        held, self._held = self._held, []
        self._at = len(self._parts)
        return held

    def _matches(self, content: Any) -> bool:
        if self._at >= len(self._parts):
            return False
        part = self._parts[self._at]
        text = _text(content)
        if type(part) is str:
            if not text or not part.startswith(text, self._offset):
                return False
            self._offset += len(text)
            if self._offset == len(part):
                self._at += 1
                self._offset = 0
            return True
        if content != part:
            return False
        self._at += 1
        return True


def _text(block: Any) -> str | None:
    if type(block) is dict and block.get("type") == "text" and type(block.get("text")) is str:
        text: str = block["text"]
        return text
    return None
