"""Wires the rooms together for each command; nothing else does."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, BinaryIO, Final

import trio

from acp_proxy import config, terminal_login
from acp_proxy.config import Settings
from acp_proxy.diagnostics import Log, printable, utc
from acp_proxy.errors import ConfigError
from acp_proxy.filters.translate.session_registry import Remembered
from acp_proxy.inference.findings import Finding
from acp_proxy.jsonrpc import codec
from acp_proxy.relay.commands import FrameReport, Report
from acp_proxy.relay.options import RelayOptions
from acp_proxy.relay.relay import Relay
from acp_proxy.runner import Runner
from acp_proxy.transport.agent_leg import AgentLeg
from acp_proxy.transport.agent_process import AgentCommand, start_agent
from acp_proxy.transport.base import Transport
from acp_proxy.transport.stdio import open_stdio

if TYPE_CHECKING:
    from acp_proxy.host.executor import HostExecutor
    from acp_proxy.plugin_host.host import PluginHost
    from acp_proxy.policy.permission_rules import Rule
    from acp_proxy.policy.profiles import ProfileChoice
    from acp_proxy.store.sessions import Registry

Start = Callable[[trio.Nursery], Awaitable[AgentLeg]]

_FLUSH_LOG: Final = 1.0
_CLOSE_PLUGINS: Final = 2.0


class Watchers:
    """Everybody who is told of what passes: recorder, findings file, stderr, plugins."""

    def __init__(self, log: Log, plugins: PluginHost | None) -> None:
        self._log = log
        self.findings: IO[bytes] | None = None
        self.recorder: Any = None
        self.plugins = plugins

    def tell(self, report: Report) -> None:
        """Hand one report to those it concerns."""
        if isinstance(report, FrameReport):
            if self.recorder is not None:
                self.recorder.frame(report.at, report.leg, report.direction, report.raw, report.number)
        elif isinstance(report, Finding):
            self._finding(report)
        if self.plugins is not None:
            self.plugins.tell(report)

    def flush(self) -> None:
        """Write what a batch has brought, and what became of the observers meanwhile."""
        if self.plugins is not None:
            for finding in self.plugins.take():
                self.tell(finding)
        if self.recorder is not None:
            self.recorder.flush()

    @property
    def reporting(self) -> bool:
        """Whether anybody wants more than findings."""
        return self.recorder is not None or (self.plugins is not None and self.plugins.observing)

    def close(self, why: str) -> None:
        """Let everybody finish, the plugins first: how they fared is for the others to write down."""
        if self.plugins is not None:
            self.plugins.close(_CLOSE_PLUGINS)
        self.flush()
        if self.recorder is not None:
            self.recorder.close(why)

    def _finding(self, finding: Finding) -> None:
        body = finding.as_json()
        if self.recorder is not None:
            self.recorder.finding(finding.at, body)
        if self.findings is not None:
            try:
                self.findings.write(codec.encode(body) + b"\n")
                self.findings.flush()
            except OSError as exc:
                self.findings = None
                self._log.error("findings can no longer be written", reason=str(exc))
        note = self._log.info if finding.severity == "info" else self._log.warning
        note(
            "finding",
            rule=finding.rule,
            session=finding.session,
            leg=finding.leg,
            action=finding.action,
            text=finding.text,
        )


def wrap(settings: Settings, command: Sequence[str]) -> int:
    """Run `acp-proxy wrap`; returns its exit status.

    Raises ConfigError when a file that was asked for cannot be opened, or a plugin cannot be used.
    """
    at_terminal = os.isatty(0) and os.isatty(1)
    if terminal_login.wanted(os.environ, at_terminal=at_terminal):
        return terminal_login.become(command)
    log = Log(settings.log.level, settings.log.format)
    registry: Registry | None = None
    try:
        registry = _registry(settings, command, log)
        return trio.run(_run, settings, list(command), log, registry)
    finally:
        if registry is not None:
            registry.close()
        log.close(_FLUSH_LOG)


def list_rules() -> int:
    """Run `acp-proxy rules`: one line on stdout for each rule a finding may name."""
    from acp_proxy.inference.rules import RULES

    for name, rule in RULES.items():
        print(f"{name}  {rule.severity:8}{rule.meaning}")
    return 0


def component(settings: Settings) -> int:
    """Run `acp-proxy component`; returns its exit status. Raises ConfigError as `wrap` does."""
    log = Log(settings.log.level, settings.log.format)
    try:
        return trio.run(_run, settings, [], log, None)
    finally:
        log.close(_FLUSH_LOG)


def demo(settings: Settings) -> int:
    """Run `acp-proxy demo`; returns its exit status."""
    from acp_proxy.demo.run import run_demo

    return run_demo(sys.stdout)


def list_plugins(settings: Settings) -> int:
    """Run `acp-proxy plugins`: one line on stdout for each plugin installed.

    Name, version, distribution, `enabled: yes` or `enabled: no`, what it does. Raises ConfigError after
    that when `wrap` would refuse what the settings enable.
    """
    from acp_proxy.plugin_host import discovery

    rows = discovery.listing(settings.plugins.enabled)
    if not rows:
        print("no plugins installed")
    widths = [max((len(row[column]) for row in rows), default=0) for column in range(3)]
    for *names, enabled, about in rows:
        columns = [printable(text).ljust(width) for text, width in zip(names, widths, strict=True)]
        print("  ".join([*columns, f"enabled: {enabled:3}", printable(about)]).rstrip())
    for plugin in discovery.chosen(settings.plugins.enabled):
        plugin.load()
    return 0


def check(settings: Settings, files: Sequence[str], *, as_json: bool, states: bool, fail_on: str) -> int:
    """Run `acp-proxy check`: judge recorded traffic, `-` being stdin, and write what is found on stdout.

    Returns 0 where nothing was found that is as grave as `fail_on`, 1 where something was, 2 where a file
    could not be used, which stderr names; the others are judged all the same.
    """
    from acp_proxy.trace.account import Account
    from acp_proxy.trace.checking import Check, tokens
    from acp_proxy.trace.format import TraceError
    from acp_proxy.trace.traffic import traffic

    options = observing_options(settings)
    account = Account(sys.stdout.write, as_json=as_json, states=states)
    frames = unusable = 0
    for name in files:
        shown = "<stdin>" if name == "-" else name
        checked = Check(lambda: Relay(options, token=tokens(), reporting=True), settings.limits.message_bytes)
        try:
            with _input(name, shown) as file:
                for judged in checked.run(traffic(file, shown)):
                    account.add(shown, judged)
        except TraceError as exc:
            unusable += 1
            print(f"Error: {printable(str(exc))}", file=sys.stderr)
        frames += checked.frames
    account.summary(len(files) - unusable, frames)
    if unusable:
        return 2
    return 1 if account.at_least(fail_on) else 0


def _input(name: str, shown: str) -> contextlib.AbstractContextManager[BinaryIO]:
    from acp_proxy.trace.format import TraceError

    if name == "-":
        return contextlib.nullcontext(sys.stdin.buffer)
    try:
        return open(name, "rb")
    except OSError as exc:
        raise TraceError(f"{shown}: cannot be read: {exc.strerror or exc}") from None


def check_config(file: Path) -> int:
    """Run `acp-proxy config check`: all mistakes on stdout, one a line; 2 if there are any, else 0."""
    found = config.mistakes(file)
    if not found:
        try:
            _permission_rules(config.load(file, [], {}))
        except ConfigError as exc:
            found = [f"{file}: {exc}"]
    for text in found:
        print(printable(text))
    return 2 if found else 0


def list_profiles(settings: Settings, name: str | None) -> int:
    """Run `acp-proxy profiles`: one line on stdout for each profile, or the text of one.

    Name, the agent's name, its versions, the file. Raises ConfigError for a broken profile, and a name that
    none has.
    """
    from acp_proxy.store import profile_files

    known = profile_files.read_all(profile_files.user_folder(settings.profiles.dir, os.environ))
    if name is not None:
        if name not in known:
            raise ConfigError(f'no profile "{name}"; there are {", ".join(sorted(known))}')
        sys.stdout.write(profile_files.text_of(known[name]))
        return 0
    rows = [
        [printable(text) for text in (one.name, one.agent, one.versions.text or "all", one.source)]
        for _, one in sorted(known.items())
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for *columns, source in rows:
        print("  ".join([*(text.ljust(width) for text, width in zip(columns, widths, strict=True)), source]))
    return 0


async def _run(settings: Settings, command: list[str], log: Log, registry: Registry | None) -> int:
    """Join a client and an agent; without a command both stand behind a conductor at stdin and stdout."""
    plugins = _plugins(settings, log, lambda finding: relay.findings.note(finding))
    watchers = Watchers(log, plugins)
    why = "acp-proxy failed"
    try:
        plugin_filters = plugins.filters() if plugins is not None else []
        watchers.findings = _findings_file(settings.findings.file)
        if settings.record.file is not None:
            from acp_proxy.trace.recorder import Recorder

            watchers.recorder = Recorder(
                Path(settings.record.file),
                command=command,
                settings=config.changed(settings),
                started_wall=time.time(),
                on_failure=lambda text: log.error("recording stopped", reason=text),
            )
        relay = Relay(
            relay_options(settings),
            token=lambda: os.urandom(6).hex(),
            chance=lambda: int.from_bytes(os.urandom(4), "big") / 2**32,
            plugin_filters=plugin_filters,
            reporting=watchers.reporting,
            remembered=Remembered(
                registry.sessions() if registry is not None else (), lambda: utc(time.time())
            ),
        )

        client, start = _ends(settings, command, log)
        runner = Runner(
            relay,
            client,
            start,
            command[0] if command else "successor",
            watchers,
            log.passthrough,
            log.error,
            settings.limits.message_bytes,
            registry,
            _host(settings),
        )
        status = await runner.run()
        why = f"exit status {status}"
        return status
    finally:
        watchers.close(why)


def _ends(settings: Settings, command: list[str], log: Log) -> tuple[Transport, Start]:
    """The client, and how to come by the agent."""
    stdio = open_stdio()
    if not command:
        from acp_proxy.conductor.link import Link

        link = Link(stdio, settings.limits.message_bytes)

        async def meet(nursery: trio.Nursery) -> AgentLeg:
            nursery.start_soon(link.serve)
            return link.agent

        return link.client, meet

    async def start(nursery: trio.Nursery) -> AgentLeg:
        return await start_agent(
            AgentCommand(command),
            eof_grace=settings.agent.eof_grace,
            term_grace=settings.agent.term_grace,
            on_stderr=log.passthrough,
            nursery=nursery,
        )

    return stdio, start


def _registry(settings: Settings, command: Sequence[str], log: Log) -> Registry | None:
    """The sessions of earlier runs, where a file for them is named; else nothing of it is even imported."""
    state = settings.state
    if state.path is None:
        return None
    from acp_proxy.store import sessions

    try:
        return sessions.SqliteRegistry(
            Path(state.path),
            command,
            on_failure=lambda text: log.warning("sessions cannot be saved", file=state.path, reason=text),
        )
    except ConfigError as exc:
        if state.required:
            raise
        log.warning("sessions of earlier runs are not known and new ones not saved", reason=str(exc))
        return sessions.MemoryRegistry()


def _host(settings: Settings) -> type[HostExecutor] | None:
    """What does `bridge.serve` for the runner; when nothing is served, nothing of it is even imported."""
    if not settings.bridge.serve:
        return None
    from acp_proxy.host.executor import AVAILABLE, HostExecutor

    for name in settings.bridge.serve:
        if not AVAILABLE[name]:
            raise ConfigError(f'bridge.serve: "{name}" is not available on this system')
    return HostExecutor


def _plugins(settings: Settings, log: Log, note: Callable[[Finding], None]) -> PluginHost | None:
    """The plugins that the settings enable; without any, nothing of theirs is even imported."""
    if not settings.plugins.enabled:
        return None
    from acp_proxy.plugin_host import host

    return host.start(
        settings.plugins.enabled,
        settings.plugins.tables,
        note,
        lambda traceback: log.debug("plugin failed", traceback=traceback),
    )


def relay_options(settings: Settings) -> RelayOptions:
    """The relay's part of the settings."""
    bridge, lifecycle, inference = settings.bridge, settings.lifecycle, settings.inference
    return RelayOptions(
        bridge=bridge.mode,
        agent_version=str(settings.agent.version),
        ack_timeout=bridge.ack_timeout,
        close_timeout=bridge.close_timeout,
        settle=bridge.settle,
        load_settle=bridge.load_settle,
        max_held=bridge.max_held,
        queue_boundary=bridge.queue_boundary,
        batch=bridge.batch,
        drop_sse=bridge.drop_sse,
        serve=bridge.serve,
        cancel_timeout=lifecycle.cancel_timeout,
        permission_timeout=lifecycle.permission_timeout,
        turn_timeout=lifecycle.turn_timeout,
        stall_after=lifecycle.stall_after,
        lifecycle=lifecycle.mode,
        rules=lifecycle.rules,
        answer_grace=lifecycle.answer_grace,
        close_tools=lifecycle.close_tools,
        stall_action=lifecycle.stall_action,
        tool_timeout=lifecycle.tool_timeout,
        extension_timeout=lifecycle.extension_timeout,
        restart=settings.agent.restart,
        restart_limit=settings.agent.restart_limit,
        restart_window=settings.agent.restart_window,
        restart_delay=settings.agent.restart_delay,
        permission_rules=_permission_rules(settings),
        busy=settings.prompts.busy,
        idle_cancel=settings.prompts.idle_cancel,
        agent_initiated=inference.agent_initiated,
        requires_action=inference.requires_action,
        quiet_time=inference.quiet_time,
        end_markers=inference.end_markers,
        synonyms=settings.normalize.synonyms,
        unstable=settings.unstable,
        profile=_profile(settings),
    )


def observing_options(settings: Settings) -> RelayOptions:
    """Settings for a relay that only watches: what is inferred and noted, nothing of what is done about it."""
    lifecycle, inference = settings.lifecycle, settings.inference
    return RelayOptions(
        bridge="off",
        batch=settings.bridge.batch,
        rules={rule: word for rule, word in lifecycle.rules.items() if word == "off"},
        answer_grace=lifecycle.answer_grace,
        stall_after=lifecycle.stall_after,
        tool_timeout=lifecycle.tool_timeout,
        turn_timeout=lifecycle.turn_timeout,
        agent_initiated=inference.agent_initiated,
        requires_action=inference.requires_action,
        quiet_time=inference.quiet_time,
        end_markers=inference.end_markers,
        synonyms=settings.normalize.synonyms,
        unstable=settings.unstable,
        profile=_profile(settings),
    )


def _profile(settings: Settings) -> ProfileChoice | None:
    """What finds the agent's profile. Raises ConfigError for a broken profile, and a name that none has."""
    if settings.agent.profile == "none":
        return None
    from acp_proxy.store import profile_files

    folder = profile_files.user_folder(settings.profiles.dir, os.environ)
    return profile_files.FileChoice(settings.agent.profile, folder, config.explicit(settings))


def _permission_rules(settings: Settings) -> Sequence[Rule]:
    """The rules that answer permissions; without any, nothing of them is even imported."""
    if not settings.permissions.rules:
        return ()
    from acp_proxy.policy.permission_rules import read_rules

    return read_rules(settings.permissions.rules)


def _findings_file(path: str | None) -> IO[bytes] | None:
    if path is None:
        return None
    # Readable for its owner alone, and no link is followed: the name may have been planted.
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0)
    flags |= getattr(os, "O_NONBLOCK", 0)  # a pipe that nobody reads is an error, not a wait
    try:
        return os.fdopen(os.open(path, flags, 0o600), "wb")
    except OSError as exc:
        raise ConfigError(f"findings.file: {path}: {exc.strerror}") from exc
    except ValueError as exc:  # a null character in it
        raise ConfigError(f"findings.file: {exc}") from exc
