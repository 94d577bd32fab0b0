"""Ends cancelled work that the agent leaves open; stands at the agent's end, off by default.

At half the time the cancel is said once more, for one that comes right behind a prompt gets lost (RA-13).
When the time is up the end is told in the agent's name, so the engine and the client learn of it in the
ordinary way; the agent's own late end is dropped (LC-12). What came after the cancel is not covered by it
(LC-40).

Source: key `lifecycle.cancel_timeout`; lifecycle §2.5; BR-23.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from acp_proxy.acp.version import Version
from acp_proxy.filters.alarms import Alarms
from acp_proxy.filters.base import Filter, Outcome, RestartAgent, Step, ToAgent, ToClient, Travels
from acp_proxy.inference.engine import Engine
from acp_proxy.inference.findings import Finding, FindingLog
from acp_proxy.jsonrpc.message import (
    REQUEST_CANCELLED,
    Json,
    Message,
    Notification,
    Request,
    Response,
    error,
    id_key,
    notification,
    result,
)
from acp_proxy.policy.native_end import NativeStates

_REPEAT: Final = "repeat"
_END: Final = "end"


class _Cancel:
    """What one cancel covers: the prompts open at that moment, and work that the agent itself reports."""

    __slots__ = ("frames", "prompts", "reported", "session_id")

    def __init__(
        self, session_id: str, prompts: dict[Any, Any], reported: bool, frames: tuple[int, ...]
    ) -> None:
        self.frames = frames
        self.session_id = session_id
        self.prompts = prompts
        self.reported = reported


class CancelPatience(Filter):
    """Waits `timeout` seconds for the end of what was cancelled.

    `restart`: the agent is started anew after that, it cannot be trusted to be free (`stall_action`).
    """

    def __init__(
        self, timeout: float, engine: Engine, findings: FindingLog, *, restart: bool = False
    ) -> None:
        self._timeout = timeout
        self._engine = engine
        self._findings = findings
        self._restart = restart
        self._alarms = Alarms()
        self._states = NativeStates()
        self._open: dict[str, dict[Any, Any]] = {}
        self._session_of: dict[Any, str] = {}
        self._cancels: dict[int, _Cancel] = {}
        self._last = 0
        self._answered: set[Any] = set()

    # ------------------------------------------------------------ what passes

    def forth(self, message: Message, at: float) -> Outcome:
        """Note open prompts; start the clock at a cancel."""
        if type(message) is Request and message.method == "session/prompt":
            session_id = message.params.get("sessionId")
            if type(session_id) is str:
                key = id_key(message.id)
                self._open.setdefault(session_id, {})[key] = message.id
                self._session_of[key] = session_id
                self._answered.discard(key)
        elif type(message) is Notification and message.method == "session/cancel":
            session_id = message.params.get("sessionId")
            if type(session_id) is str:
                self._cancelled(session_id, message, at)
        return message

    def _cancelled(self, session_id: str, message: Notification, at: float) -> None:
        """A cancel said again covers what came since, and does not put off the end of what came before."""
        prompts = dict(self._open.get(session_id, {}))
        session = self._engine.sessions.get(session_id)
        reported = session is not None and session.native and session.busy
        for earlier in self._cancels.values():
            if earlier.session_id == session_id:
                prompts = {key: token for key, token in prompts.items() if key not in earlier.prompts}
                reported = reported and not earlier.reported
        if not prompts and not reported:
            return
        self._last += 1
        frames = (message.frame.number,) if message.frame is not None else ()
        self._cancels[self._last] = _Cancel(session_id, prompts, reported, frames)
        self._alarms.set((_REPEAT, self._last), at + self._timeout / 2)
        self._alarms.set((_END, self._last), at + self._timeout)

    def back(self, message: Travels, at: float) -> Outcome:
        """Stop the clock when the work ends; drop an end that was already told."""
        if type(message) is Response:
            key = id_key(message.id)
            if key in self._answered:
                self._answered.discard(key)
                self._note_late(message, None, at)
                return None
            self._prompt_answered(key, message)
        elif type(message) is Notification and message.body["method"] == "session/update":
            update = message.params.get("update")
            session_id = message.params.get("sessionId")
            if (
                type(update) is dict
                and update.get("sessionUpdate") == "state_update"
                and type(session_id) is str
            ):
                return self._state(session_id, update, message, at)
        return message

    def _prompt_answered(self, key: Any, message: Response) -> None:
        session_id = self._session_of.pop(key, None)
        if session_id is None:
            return
        turns = self._open[session_id]
        turns.pop(key, None)
        if not turns:
            del self._open[session_id]
        if not message.is_error:
            self._states.inserted(session_id)
        for number, cancel in list(self._cancels.items()):
            if cancel.prompts.pop(key, None) is not None:
                self._settle(number, cancel)

    def _state(self, session_id: str, update: Json, message: Notification, at: float) -> Outcome:
        if self._states.is_late_end(session_id, update):
            self._note_late(message, session_id, at)
            return None
        if update.get("state") == "idle":
            for number, cancel in list(self._cancels.items()):
                if cancel.session_id == session_id and cancel.reported:
                    cancel.reported = False
                    self._settle(number, cancel)
        return message

    def _settle(self, number: int, cancel: _Cancel) -> None:
        if not cancel.prompts and not cancel.reported:
            self._forget(number)

    def _forget(self, number: int) -> None:
        del self._cancels[number]
        self._alarms.drop((_REPEAT, number))
        self._alarms.drop((_END, number))

    def _note_late(self, message: Message, session_id: str | None, at: float) -> None:
        frames = (message.frame.number,) if message.frame is not None else ()
        text = "end of work whose end was told in the agent's name"
        self._findings.note(
            Finding(
                at, "V58", "agent", text, session=session_id, frames=frames, action="repaired", source="LC-12"
            )
        )

    # ------------------------------------------------------------ time

    def next_deadline(self) -> float | None:
        """When the oldest unconfirmed cancel is repeated or runs out."""
        return self._alarms.next()

    def expire(self, at: float) -> Sequence[Step]:
        """Say a cancel again, or tell the end of what it covered."""
        steps: list[Step] = []
        for key in self._alarms.ring(at):
            assert isinstance(key, tuple)
            what, number = key
            cancel = self._cancels[number]
            if what == _REPEAT:
                steps.append(ToAgent(notification("session/cancel", {"sessionId": cancel.session_id})))
                continue
            del self._cancels[number]
            steps += self._end(cancel, at)
        return steps

    def _end(self, cancel: _Cancel, at: float) -> list[Step]:
        session_id = cancel.session_id
        text = f"work not ended {self._timeout:g} s after its cancel"
        self._findings.note(
            Finding(
                at,
                "V57",
                "agent",
                text,
                session=session_id,
                frames=cancel.frames,
                action="repaired",
                source="LC-91, BR-23",
            )
        )
        steps: list[Step] = []
        if cancel.reported:
            steps.append(ToClient(self._states.end(session_id, {"stopReason": "cancelled"})))
        for key, token in cancel.prompts.items():
            self._session_of.pop(key, None)
            turns = self._open[session_id]
            turns.pop(key, None)
            if not turns:
                del self._open[session_id]
            self._answered.add(key)
            if self._engine.version is Version.V1:
                steps.append(ToClient(result(token, {"stopReason": "cancelled"})))
            else:
                # It may have been inserted or not; nobody will know now, and an error promises nothing.
                steps.append(ToClient(error(token, REQUEST_CANCELLED, "the prompt was cancelled")))
        if self._restart:
            steps.append(RestartAgent())
        return steps

    # ------------------------------------------------------------ ends

    def client_gone(self, at: float) -> Sequence[Step]:
        """The agent is ended by other means."""
        for number in list(self._cancels):
            self._forget(number)
        return ()

    def agent_gone(self, error_body: Json, at: float) -> Sequence[Step]:
        """All is over; another agent owes nothing for this one."""
        self.client_gone(at)
        self._open.clear()
        self._session_of.clear()
        self._answered.clear()
        self._states.clear()
        return ()
