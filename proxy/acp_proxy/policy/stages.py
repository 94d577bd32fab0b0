"""Which filters the policy keys ask for, and where each of them stands.

By default nothing is on, and then nothing of this room is even imported: a proxy is started often.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from acp_proxy.filters.base import Filter
from acp_proxy.inference.engine import Engine
from acp_proxy.inference.findings import FindingLog

if TYPE_CHECKING:
    from acp_proxy.policy.permission_rules import Rule
    from acp_proxy.policy.revival import Revival


class PolicyOptions(Protocol):
    """The settings these stages obey; times in seconds, 0 = off."""

    permission_timeout: float
    extension_timeout: float
    stall_after: float
    stall_action: tuple[str, ...]
    tool_timeout: float
    turn_timeout: float
    cancel_timeout: float
    restart: str
    restart_limit: int
    restart_window: float
    restart_delay: float
    permission_rules: Sequence[Rule]
    busy: str
    idle_cancel: str
    max_held: int


class Stages:
    """The stages of one chain: at the client's end, between translator and engine, at the agent's end.

    `same_version` takes the translator's place where none is needed. `revival` is the last stage at the
    agent's end, where a restart is configured. `token` makes unguessable texts, `chance` numbers from 0 up
    to 1.
    """

    def __init__(
        self,
        options: PolicyOptions,
        engine: Engine,
        findings: FindingLog,
        token: Callable[[], str],
        chance: Callable[[], float],
    ) -> None:
        self.at_client: list[Filter] = []
        self.before_engine: list[Filter] = []
        self.at_agent: list[Filter] = []
        self.same_version: Filter | None = None
        self.revival: Revival | None = None
        restarting = "restart" in options.stall_action
        if options.permission_timeout or options.extension_timeout:
            from acp_proxy.policy.client_patience import ClientPatience

            self.at_client.append(
                ClientPatience(
                    findings,
                    token,
                    permission_timeout=options.permission_timeout,
                    extension_timeout=options.extension_timeout,
                )
            )
        if options.busy != "pass":
            from acp_proxy.policy.busy_prompts import BusyPrompts

            self.same_version = BusyPrompts(options.busy, engine, token, options.max_held)
        if options.idle_cancel == "swallow":
            from acp_proxy.policy.idle_cancel import IdleCancel

            self.before_engine.append(IdleCancel(engine))
        if options.stall_after or options.turn_timeout or options.tool_timeout:
            from acp_proxy.policy.stalls import Stalls

            self.before_engine.append(
                Stalls(
                    engine.sessions,
                    findings,
                    engine.from_agent,
                    stall_after=options.stall_after,
                    turn_timeout=options.turn_timeout,
                    tool_timeout=options.tool_timeout,
                    actions=options.stall_action,
                    confirmed=bool(options.cancel_timeout),
                )
            )
        if options.permission_rules:
            from acp_proxy.policy.permissions import Permissions

            self.at_agent.append(Permissions(options.permission_rules, findings))
        if options.cancel_timeout:
            from acp_proxy.policy.cancel_patience import CancelPatience

            self.at_agent.append(CancelPatience(options.cancel_timeout, engine, findings, restart=restarting))
        if restarting or options.restart != "never":
            from acp_proxy.policy.breaker import Breaker
            from acp_proxy.policy.revival import Revival

            breaker = Breaker(options.restart_limit, options.restart_window, options.restart_delay, chance)
            self.revival = Revival(
                engine, findings, token, breaker, when=options.restart, max_held=options.max_held
            )
            self.at_agent.append(self.revival)
