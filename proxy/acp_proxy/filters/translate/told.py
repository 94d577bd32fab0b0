"""What the client has been told of one session, and what is still owed to it."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

from acp_proxy.filters.base import Step
from acp_proxy.filters.translate import config_options
from acp_proxy.filters.translate.echo import EchoMatch
from acp_proxy.filters.translate.message_ids import MessageIds
from acp_proxy.jsonrpc.message import Json


class Turn:
    """A prompt at the agent: the client's request, and whether it has been acknowledged (LC-30)."""

    __slots__ = ("adopted", "client_id", "echo", "inserted", "own_id", "prompt")

    def __init__(self, client_id: Any, own_id: int, prompt: Sequence[Any]) -> None:
        self.client_id = client_id
        self.own_id = own_id
        self.prompt = prompt
        self.inserted = False
        self.adopted: str | None = None
        self.echo: EchoMatch | None = None


class HeldPrompt:
    """A prompt that waits for the one before it: a v1 agent takes one at a time (RA-04)."""

    __slots__ = ("body", "client_id")

    def __init__(self, client_id: Any, body: Json) -> None:
        self.client_id = client_id
        self.body = body


class Settling:
    """Steps put off until a tail of updates has been quiet for a while, but never beyond `latest`."""

    __slots__ = ("latest", "quiet", "steps")

    def __init__(self, steps: list[Step], quiet: float, at: float) -> None:
        self.steps = steps
        self.quiet = quiet
        self.latest = at + 4 * quiet


class ConfigView:
    """The last full list of config options, as a v2 client must be given it each time (bridge §7.6)."""

    __slots__ = ("_modes", "_options")

    def __init__(self) -> None:
        self._options: list[Any] | None = None
        self._modes: Json | None = None

    def learn(self, told: Json) -> None:
        """Take over what a v1 result or update says of options and modes."""
        if type(told.get("configOptions")) is list:
            self._options = config_options.options(told["configOptions"])
        if type(told.get("modes")) is dict:
            self._modes = told["modes"]

    def full(self) -> list[Any] | None:
        """All options, the made-up mode option included; None when the agent has told of none."""
        made_up = self._made_up()
        if made_up is not None:
            return [*(self._options or ()), made_up]
        return self._options

    def is_made_up(self, config_id: Any) -> bool:
        """Whether this option stands for the agent's modes."""
        made_up = self._made_up()
        return made_up is not None and made_up["configId"] == config_id

    def set_value(self, config_id: Any, value: Any) -> None:
        """An option was set, and the agent did not say the full list."""
        if self.is_made_up(config_id):
            self.set_mode(value)
        elif self._options is not None:
            self._options = config_options.with_value(self._options, config_id, value)

    def set_mode(self, mode: str) -> bool:
        """The agent's mode is this now; whether that changes what the client was told."""
        if config_options.has_mode(self._options):
            assert self._options is not None
            option = next(o for o in self._options if type(o) is dict and o.get("category") == "mode")
            before = self._options
            self._options = config_options.with_value(before, option.get("configId"), mode)
            return self._options is not before
        if self._modes is None or self._modes.get("currentModeId") == mode:
            return False
        self._modes = {**self._modes, "currentModeId": mode}
        return True

    def _made_up(self) -> Json | None:
        if self._modes is None or config_options.has_mode(self._options):
            return None
        taken = [option.get("configId") for option in self._options or () if type(option) is dict]
        return config_options.mode_option(self._modes, [name for name in taken if type(name) is str])


class ToldSession:
    """One session as the client knows it."""

    __slots__ = (
        "attached",
        "closed",
        "closing",
        "config",
        "cwd",
        "directories",
        "held",
        "id",
        "ids",
        "leaving",
        "openings",
        "questions",
        "settling",
        "state",
        "swallowing",
        "terminals",
        "titles",
        "turn",
    )

    def __init__(self, session_id: str, epoch: str) -> None:
        self.id = session_id
        self.ids = MessageIds(epoch)
        self.config = ConfigView()
        self.cwd: str | None = None
        self.directories: tuple[str, ...] = ()
        self.attached = False
        self.closed = False
        self.closing: list[Any] = []
        self.leaving = False
        self.openings = 0
        self.turn: Turn | None = None
        self.held: deque[HeldPrompt] = deque()
        self.questions: set[int] = set()
        self.settling: Settling | None = None
        self.state: str | None = None
        self.swallowing = False
        self.terminals: set[str] = set()
        self.titles: dict[str, str | None] = {}

    def open_in(self, cwd: Any, additional: Any) -> None:
        """Take over the directories of the last opening; those of an earlier one are no longer granted."""
        if type(cwd) is str:
            self.cwd = cwd
        given = [self.cwd, *(additional if type(additional) is list else ())]
        self.directories = tuple(path for path in given if type(path) is str)

    @property
    def busy(self) -> bool:
        """Whether a new prompt has to wait."""
        return self.turn is not None or bool(self.held) or self.settling is not None
