"""What the relay can be told to do differently; plain values, times in seconds, 0 = off."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from acp_proxy.policy.permission_rules import Rule
    from acp_proxy.policy.profiles import Content, ProfileChoice


class RelayOptions:
    """The settings that the relay and its filters obey; names follow the configuration's keys."""

    __slots__ = (
        "ack_timeout",
        "agent_initiated",
        "agent_version",
        "answer_grace",
        "batch",
        "bridge",
        "busy",
        "cancel_timeout",
        "close_timeout",
        "close_tools",
        "drop_sse",
        "end_markers",
        "extension_timeout",
        "idle_cancel",
        "lifecycle",
        "load_settle",
        "max_held",
        "permission_rules",
        "permission_timeout",
        "profile",
        "queue_boundary",
        "quiet_time",
        "requires_action",
        "restart",
        "restart_delay",
        "restart_limit",
        "restart_window",
        "rules",
        "serve",
        "settle",
        "stall_action",
        "stall_after",
        "synonyms",
        "tool_timeout",
        "turn_timeout",
        "unstable",
    )

    def __init__(
        self,
        *,
        bridge: str = "auto",
        agent_version: str = "auto",
        ack_timeout: float = 1.0,
        close_timeout: float = 10.0,
        settle: float = 0.0,
        load_settle: float = 0.0,
        max_held: int = 32,
        queue_boundary: str = "each",
        batch: str = "reject",
        drop_sse: bool = False,
        serve: tuple[str, ...] = (),
        cancel_timeout: float = 0.0,
        permission_timeout: float = 0.0,
        turn_timeout: float = 0.0,
        stall_after: float = 0.0,
        stall_action: tuple[str, ...] = (),
        tool_timeout: float = 0.0,
        extension_timeout: float = 0.0,
        restart: str = "never",
        restart_limit: int = 3,
        restart_window: float = 60.0,
        restart_delay: float = 0.2,
        permission_rules: Sequence[Rule] = (),
        busy: str = "pass",
        idle_cancel: str = "forward",
        lifecycle: str = "observe",
        rules: Mapping[str, str] | None = None,
        answer_grace: float = 1.0,
        close_tools: bool = False,
        agent_initiated: str = "ignore",
        requires_action: str = "blocked",
        quiet_time: float = 30.0,
        end_markers: tuple[str, ...] = (),
        synonyms: bool = False,
        unstable: bool = False,
        profile: ProfileChoice | None = None,
    ) -> None:
        self.profile = profile
        self.bridge = bridge
        self.agent_version = agent_version
        self.ack_timeout = ack_timeout
        self.close_timeout = close_timeout
        self.settle = settle
        self.load_settle = load_settle
        self.max_held = max_held
        self.queue_boundary = queue_boundary
        self.batch = batch
        self.drop_sse = drop_sse
        self.serve = serve
        self.cancel_timeout = cancel_timeout
        self.permission_timeout = permission_timeout
        self.turn_timeout = turn_timeout
        self.stall_after = stall_after
        self.stall_action = stall_action
        self.tool_timeout = tool_timeout
        self.extension_timeout = extension_timeout
        self.restart = restart
        self.restart_limit = restart_limit
        self.restart_window = restart_window
        self.restart_delay = restart_delay
        self.permission_rules = permission_rules
        self.busy = busy
        self.idle_cancel = idle_cancel
        self.lifecycle = lifecycle
        self.rules = dict(rules or {})
        self.answer_grace = answer_grace
        self.close_tools = close_tools
        self.agent_initiated = agent_initiated
        self.requires_action = requires_action
        self.quiet_time = quiet_time
        self.end_markers = end_markers
        self.synonyms = synonyms
        self.unstable = unstable

    def under(self, content: Content) -> RelayOptions:
        """These options with what an agent's profile sets; the profile's owner left out what is explicit."""
        adopted = copy.copy(self)
        for key, value in content.settings.items():
            setattr(adopted, _OF_PROFILES[key], value)
        return adopted


_OF_PROFILES: Final = {
    "bridge.settle": "settle",
    "bridge.load_settle": "load_settle",
    "inference.agent_initiated": "agent_initiated",
    "inference.requires_action": "requires_action",
    "inference.quiet_time": "quiet_time",
    "inference.end_markers": "end_markers",
    "prompts.idle_cancel": "idle_cancel",
    "normalize.synonyms": "synonyms",
}
