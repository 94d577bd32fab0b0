"""Wires the rooms together for each command; nothing else does."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any, Final

import trio

from acp_proxy import config
from acp_proxy.config import Settings
from acp_proxy.diagnostics import Log
from acp_proxy.errors import ConfigError
from acp_proxy.inference.findings import Finding
from acp_proxy.jsonrpc import codec
from acp_proxy.relay.commands import FrameReport, Report
from acp_proxy.relay.options import RelayOptions
from acp_proxy.relay.relay import Relay
from acp_proxy.runner import Runner
from acp_proxy.transport.agent_process import AgentCommand, AgentProcess, start_agent
from acp_proxy.transport.stdio import open_stdio

_FLUSH_LOG: Final = 1.0


class Watchers:
    """Everybody who is told of what passes: recorder, findings file, stderr."""

    def __init__(self, log: Log, findings: IO[bytes] | None) -> None:
        self._log = log
        self._findings = findings
        self.recorder: Any = None
        self.fresh = False

    def tell(self, report: Report) -> None:
        """Hand one report to those it concerns."""
        if isinstance(report, FrameReport):
            if self.recorder is not None:
                self.recorder.frame(report.at, report.leg, report.direction, report.raw, report.number)
        elif isinstance(report, Finding):
            self._finding(report)

    def flush(self) -> None:
        """Write what a batch has brought."""
        if self.recorder is not None:
            self.recorder.flush()

    def _finding(self, finding: Finding) -> None:
        body = finding.as_json()
        if self.recorder is not None:
            self.recorder.finding(finding.at, body)
        if self._findings is not None:
            try:
                self._findings.write(codec.encode(body) + b"\n")
                self._findings.flush()
            except OSError as exc:
                self._findings = None
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

    Raises ConfigError when a file that was asked for cannot be opened.
    """
    log = Log(settings.log.level, settings.log.format)
    try:
        return trio.run(_wrap, settings, list(command), log)
    finally:
        log.close(_FLUSH_LOG)


def demo(settings: Settings) -> int:
    """Run `acp-proxy demo`; returns its exit status."""
    from acp_proxy.demo.run import run_demo

    return run_demo(sys.stdout)


async def _wrap(settings: Settings, command: list[str], log: Log) -> int:
    watchers = Watchers(log, _findings_file(settings.findings.file))
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
        reporting=watchers.recorder is not None,
    )

    async def start(nursery: trio.Nursery) -> AgentProcess:
        return await start_agent(
            AgentCommand(command),
            eof_grace=settings.agent.eof_grace,
            term_grace=settings.agent.term_grace,
            on_stderr=log.passthrough,
            nursery=nursery,
        )

    runner = Runner(
        relay,
        open_stdio(),
        start,
        command[0],
        watchers,
        log.passthrough,
        log.error,
        settings.limits.message_bytes,
    )
    status = await runner.run()
    if watchers.recorder is not None:
        watchers.recorder.close(f"exit status {status}")
    return status


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
        cancel_timeout=lifecycle.cancel_timeout,
        permission_timeout=lifecycle.permission_timeout,
        turn_timeout=lifecycle.turn_timeout,
        stall_after=lifecycle.stall_after,
        agent_initiated=inference.agent_initiated,
        requires_action=inference.requires_action,
        quiet_time=inference.quiet_time,
        end_markers=inference.end_markers,
        synonyms=settings.normalize.synonyms,
        unstable=settings.unstable,
    )


def _findings_file(path: str | None) -> IO[bytes] | None:
    if path is None:
        return None
    try:
        return open(path, "wb")
    except OSError as exc:
        raise ConfigError(f"findings.file: {path}: {exc.strerror}") from exc
