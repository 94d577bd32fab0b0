"""Message ids for chunks that a v1 agent sends without one (bridge §5).

Shape `{epoch}-{u|a|t}{n}`, counted per session and message type. A new id begins at a boundary:
another message type, a new tool call, the start or end of a prompt or a replay. The epoch is `0`
when the proxy saw the session from its start or through a full load, so that replayed ids equal
the live ones; otherwise it is a random token.
"""

from __future__ import annotations

from typing import Final

FROM_THE_START: Final = "0"
_LETTERS: Final = {"user_message_chunk": "u", "agent_message_chunk": "a", "agent_thought_chunk": "t"}


class MessageIds:
    """The ids of one session's messages; the agent's own ids are only kept out of the way."""

    __slots__ = ("_counts", "_current", "_letter", "_taken", "epoch")

    def __init__(self, epoch: str) -> None:
        self.epoch = epoch
        self._counts = {"u": 0, "a": 0, "t": 0}
        self._letter: str | None = None
        self._current: str | None = None
        self._taken: set[str] = set()

    def boundary(self) -> None:
        """The message under way is over."""
        self._letter = None
        self._current = None

    def restart(self) -> None:
        """A replay from the start begins: count as the live session was counted."""
        self.epoch = FROM_THE_START
        self._counts = {"u": 0, "a": 0, "t": 0}
        self.boundary()

    def given(self, tag: str, message_id: str) -> None:
        """The agent names a message itself."""
        self._letter = _LETTERS[tag]
        self._current = None
        if message_id.startswith(self.epoch + "-"):
            self._taken.add(message_id)

    def of_chunk(self, tag: str) -> str:
        """The id of a chunk that came without one."""
        letter = _LETTERS[tag]
        if self._letter != letter or self._current is None:
            self._letter = letter
            self._current = self._new(letter)
        return self._current

    def of_prompt(self) -> str:
        """The id of a prompt's message; no chunk continues it, and it interrupts none."""
        return self._new("u")

    def _new(self, letter: str) -> str:
        while True:
            self._counts[letter] += 1
            made = f"{self.epoch}-{letter}{self._counts[letter]}"
            if made not in self._taken:
                return made
