"""Hands reports to the plugins that watch, in a thread of their own.

The traffic never waits for an observer: reports wait in a bounded queue, and when it is full they are
lost. Observers learn of a gap by a Finding in its place, people by one finding for the whole run. An
observer that fails is dropped. No observer can harm a message: each report's message is decoded anew.

The same thread closes the plugins, so none of them needs a lock.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from typing import Final

from acp_proxy.inference.findings import Finding
from acp_proxy.jsonrpc import codec
from acp_proxy.jsonrpc.message import Frame, Json, Message, classify
from acp_proxy.plugin import Plugin
from acp_proxy.plugin_host.fence import Reported, failure_text
from acp_proxy.relay.commands import FrameReport, Report

MAX_REPORTS: Final = 10_000
MAX_BYTES: Final = 1 << 24


class Observers:
    """The observing side of some plugins; `tell` is for one thread, the one the traffic runs in.

    `report` is called with each failure, from either thread.
    """

    def __init__(
        self,
        plugins: Sequence[tuple[str, Plugin]],
        report: Reported,
        *,
        max_reports: int = MAX_REPORTS,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        """`max_bytes` counts the frames that wait; a single larger one still finds an empty queue."""
        self.missed = 0
        self._plugins = list(plugins)
        self._watching = [(name, one) for name, one in plugins if _observes(one)]
        self._report = report
        self._max_reports = max_reports
        self._max_bytes = max_bytes
        self._waiting: deque[Report] = deque()
        self._bytes = 0
        self._gap = 0
        self._gap_at = 0.0
        self._told_missed = False
        self._ready = threading.Condition()
        self._closing = False
        self._thread: threading.Thread | None = None

    @property
    def watching(self) -> bool:
        """Whether anybody wants reports."""
        return bool(self._watching)

    def tell(self, report: Report) -> None:
        """Let the observers have a report soon, or lose it."""
        if not self._watching:
            return
        size = _size(report)
        with self._ready:
            if self._closing:
                return
            full = len(self._waiting) >= self._max_reports or self._bytes + size > self._max_bytes
            if full and self._waiting:
                self.missed += 1
                self._gap += 1
                self._gap_at = report.at
            else:
                self._mark_gap()
                self._waiting.append(report)
                self._bytes += size
                self._ready.notify()
        if self._thread is None:
            self._start()
        if self.missed and not self._told_missed:
            self._told_missed = True
            text = "observers of plugins are too slow: they miss reports from here on"
            self._report(Finding(report.at, "V55", "client", text, source="plugins"), None)

    def close(self, timeout: float) -> bool:
        """Let observers see what waits, close all plugins; False when that took longer than `timeout` s."""
        with self._ready:
            self._mark_gap()
            self._closing = True
            self._ready.notify()
        if self._thread is None:
            self._start()
        if self._thread is None:
            return False
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _mark_gap(self) -> None:
        """Put a finding where reports are missing; the lock is held."""
        if self._gap:
            text = f"{self._gap} reports were lost here: observers were too slow"
            self._waiting.append(Finding(self._gap_at, "V55", "client", text, source="plugins"))
            self._gap = 0

    # ------------------------------------------------------------ the thread

    def _start(self) -> None:
        thread = threading.Thread(target=self._serve, name="acp-proxy plugins", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # no more threads: then nobody watches
            self._watching = []
            return
        self._thread = thread

    def _serve(self) -> None:
        at = 0.0
        while (report := self._next()) is not None:
            at = report.at
            own = _own(report)
            for name, one in list(self._watching):
                try:
                    one.observe(own)
                except BaseException as exc:
                    self._watching = [pair for pair in self._watching if pair[1] is not one]
                    self._failed(name, "observe", exc, at, "; it observes no more")
        for name, one in self._plugins:
            try:
                one.close()
            except BaseException as exc:
                self._failed(name, "close", exc, at)

    def _next(self) -> Report | None:
        with self._ready:
            while not self._waiting:
                if self._closing:
                    return None
                self._ready.wait()
            report = self._waiting.popleft()
            self._bytes -= _size(report)
            return report

    def _failed(self, name: str, method: str, exc: BaseException, at: float, then: str = "") -> None:
        text = f"plugin {name!r} failed in {method}: {failure_text(exc)}{then}"
        self._report(Finding(at, "V55", "client", text, source=f"plugins.{name}"), exc)


def _observes(one: Plugin) -> bool:
    return type(one).observe is not Plugin.observe or "observe" in vars(one)


def _size(report: Report) -> int:
    return len(report.raw) if type(report) is FrameReport else 0


def _own(report: Report) -> Report:
    """A report that shares nothing with the traffic."""
    if type(report) is not FrameReport or report.message is None:
        return report
    frame = Frame(report.raw, report.number) if report.number is not None else None
    message: Message | None
    try:
        body: Json = codec.decode(report.raw)
        message = classify(body, frame)
    except codec.DecodeError:
        message = None
    return FrameReport(report.at, report.leg, report.direction, report.raw, report.number, message)
