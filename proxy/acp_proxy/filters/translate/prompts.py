"""Prompts of a v2 client at a v1 agent: acknowledgement, the queue, and the end of a turn (bridge §5).

A v1 agent answers a prompt when the turn is over; a v2 client expects the answer when its message
is in. So the request is acknowledged at the first evidence that the agent took it, and the v1
answer becomes an idle snapshot.
"""

from __future__ import annotations

from typing import Any, Final

from acp_proxy.acp.version import Version
from acp_proxy.acp.vocabulary import known_values
from acp_proxy.filters.base import Step, ToAgent, ToClient
from acp_proxy.filters.snapshot import snapshot_params
from acp_proxy.filters.translate.bridge import UPDATE, Bridge, Call
from acp_proxy.filters.translate.echo import EchoMatch
from acp_proxy.filters.translate.refusal import Refusal
from acp_proxy.filters.translate.told import HeldPrompt, ToldSession, Turn
from acp_proxy.inference.foreground import Change
from acp_proxy.inference.session import State
from acp_proxy.jsonrpc.message import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    REQUEST_CANCELLED,
    Json,
    Request,
    Response,
    error,
    id_key,
    notification,
    result,
    well_formed_error,
)

_BLOCKS: Final = known_values(Version.V2, "ContentBlock")
_NEEDS: Final = {"image": "image", "audio": "audio", "resource": "embeddedContext"}


class Prompts:
    """The turns of all sessions of one bridge."""

    def __init__(self, bridge: Bridge) -> None:
        self._bridge = bridge
        self._holders: dict[Any, ToldSession] = {}

    # ------------------------------------------------------------ from the client

    def ask(self, message: Request, params: Json, at: float) -> list[Step]:
        """Take a prompt: refuse it, hold it, or pass it on."""
        bridge = self._bridge
        told = bridge.session(params["sessionId"])
        refusal = self._unfit(params["prompt"])
        if refusal is not None:
            return bridge.refuse(message.id, refusal)
        fitted = bridge.fit_request("session/prompt", params)
        if isinstance(fitted, Refusal):
            return bridge.refuse(message.id, fitted)
        body = message.body if fitted is message.body.get("params") else {**message.body, "params": fitted}
        if not told.busy:
            return self._dispatch(told, message.id, body, at)
        if len(told.held) >= bridge.options.max_held:
            return bridge.refuse(message.id, Refusal(INTERNAL_ERROR, "too many prompts wait in this session"))
        told.held.append(HeldPrompt(message.id, body))
        self._holders[id_key(message.id)] = told
        return []

    def withdraw(self, client_id: Any) -> list[Step] | None:
        """`$/cancel_request` for a prompt: a held one is answered here; None when it is none of those (LC-71)."""
        key = id_key(client_id)
        told = self._holders.pop(key, None)
        if told is None:
            return None
        told.held.remove(next(held for held in told.held if id_key(held.client_id) == key))
        return [ToClient(error(client_id, REQUEST_CANCELLED, "prompt withdrawn"))]

    def flush_held(self, told: ToldSession, reason: Json | None = None) -> list[Step]:
        """Answer the prompts that never reached the agent: cancelled, or `reason` (LC-42, LC-51)."""
        refused = reason or {"code": REQUEST_CANCELLED, "message": "cancelled"}
        steps: list[Step] = [
            ToClient(error(held.client_id, refused["code"], refused["message"], refused.get("data")))
            for held in told.held
        ]
        for held in told.held:
            del self._holders[id_key(held.client_id)]
        told.held.clear()
        return steps

    def is_held(self, client_id: Any) -> bool:
        """Whether a prompt with this request id waits."""
        return id_key(client_id) in self._holders

    def _unfit(self, prompt: list[Any]) -> Refusal | None:
        """Why the agent cannot be given these blocks (LC-34)."""
        for block in prompt:
            kind = block.get("type")
            if kind not in _BLOCKS:
                return Refusal(INVALID_PARAMS, "prompt: unknown content block type")
            needed = _NEEDS.get(kind)
            if needed is not None and not self._bridge.agent_has("promptCapabilities", needed):
                return Refusal(INVALID_PARAMS, f"prompt: the agent takes no {kind} blocks")
        return None

    def _dispatch(self, told: ToldSession, client_id: Any, body: Json, at: float) -> list[Step]:
        bridge = self._bridge
        own_id = bridge.open_call(Call(client_id, "session/prompt", body["params"], "prompt", told))
        told.turn = Turn(client_id, own_id, body["params"]["prompt"])
        told.ids.boundary()
        if bridge.options.ack_timeout:
            bridge.alarms.set(("ack", told.id), at + bridge.options.ack_timeout)
        return [ToAgent(Request({**body, "jsonrpc": "2.0", "id": own_id}))]

    # ------------------------------------------------------------ insertion

    def insert(self, told: ToldSession) -> list[Step]:
        """Acknowledge the open turn, if it is not yet: the echo, then the answer (LC-30, LC-31)."""
        turn = told.turn
        if turn is None or turn.inserted:
            return []
        message_id = told.ids.of_prompt()
        turn.echo = EchoMatch(turn.prompt)
        echo = {"sessionUpdate": "user_message", "messageId": message_id, "content": list(turn.prompt)}
        return [self._bridge.update(told.id, echo), *self._acknowledge(told, turn, message_id)]

    def adopt(self, told: ToldSession, turn: Turn, message_id: str) -> list[Step]:
        """The agent echoes the prompt itself before anything else: its id is the message's."""
        turn.adopted = message_id
        return self._acknowledge(told, turn, message_id)

    def _acknowledge(self, told: ToldSession, turn: Turn, message_id: str) -> list[Step]:
        turn.inserted = True
        # The client has its answer: from here on its id is free (LC-73).
        self._bridge.own_call_ids.pop(id_key(turn.client_id), None)
        self._bridge.alarms.drop(("ack", told.id))
        return [ToClient(result(turn.client_id, {"messageId": message_id}))]

    # ------------------------------------------------------------ the end

    def tell(self, told: ToldSession, change: Change, at: float) -> list[Step]:
        """Write a state change for the client, in its place between echo and answer."""
        if change.new is not State.IDLE or change.resume:
            if not change.resume and told.state == change.new.value:
                return []
            told.state = change.new.value
            return [self._snapshot(change)]
        steps: list[Step] = []
        failed = change.ending is not None and change.ending.error is not None
        refused = failed and change.ending is not None and not change.ending.hinted
        if told.turn is not None:
            if change.ending is not None and not refused and not told.turn.inserted:
                steps += self.insert(told)
            steps += self._unfinished_echo(told.turn)
        elif told.closed:
            return []
        merge = self._bridge.options.queue_boundary == "merge"
        if merge and told.held and not failed and not change.after_cancel:
            return steps
        if told.leaving:
            change.after_cancel = True  # a close is the client's wish, however the work ends (LC-50)
        told.state = State.IDLE.value
        snapshot = self._snapshot(change, self._rewritten(change, at))
        quiet = self._bridge.options.settle
        if quiet and not refused and not told.leaving:
            self._bridge.put_off(told, [snapshot], quiet, at)
            return steps
        return [*steps, snapshot]

    def ended(self, call: Call, message: Response, at: float) -> list[Step]:
        """The agent answered a prompt; its state change has been told already. `go_on` is the caller's."""
        told = call.session
        assert told is not None
        turn = told.turn
        steps: list[Step] = []
        if turn is None or turn.own_id != message.id:
            return steps
        if not turn.inserted:
            if message.is_error:
                steps.append(
                    ToClient(
                        Response(
                            {
                                **message.body,
                                "id": turn.client_id,
                                "error": well_formed_error(message.body["error"]),
                            }
                        )
                    )
                )
            else:
                steps += self.insert(told)
        told.turn = None
        told.ids.boundary()
        self._bridge.alarms.drop(("ack", told.id))
        return steps

    def go_on(self, told: ToldSession, at: float) -> list[Step]:
        """Pass the next held prompt on, if nothing stands in its way."""
        if told.turn is not None or told.settling is not None or told.leaving or not told.held:
            return []
        held = told.held.popleft()
        del self._holders[id_key(held.client_id)]
        return self._dispatch(told, held.client_id, held.body, at)

    def abandon(self, told: ToldSession) -> list[Step]:
        """The session was closed under an open turn: answer what is owed and forget it (LC-51)."""
        steps = self.flush_held(told)
        turn, told.turn = told.turn, None
        if turn is not None and not turn.inserted:
            steps.append(ToClient(error(turn.client_id, REQUEST_CANCELLED, "the session was closed")))
        self._bridge.alarms.drop(("ack", told.id))
        return steps

    def _unfinished_echo(self, turn: Turn) -> list[Step]:
        held = turn.echo.release() if turn.echo is not None else []
        return [ToClient(notification(UPDATE, params)) for params in held]

    def _snapshot(self, change: Change, original_stop: str | None = None) -> Step:
        """A snapshot for the client; a malformed usage of the agent's counts as none (§9)."""
        params = snapshot_params(change, original_stop=original_stop)
        checked = self._bridge.fit("SessionUpdate", params["update"])
        if checked.problem is None and checked.value is not params["update"]:
            params = {**params, "update": checked.value}
        return ToClient(notification(UPDATE, params))

    def _rewritten(self, change: Change, at: float) -> str | None:
        """The stop reason the agent gave for a cancelled turn, when it is not `cancelled` (LC-17, V12)."""
        ending = change.ending
        if not change.after_cancel or ending is None or ending.error is not None:
            return None
        if ending.stop_reason is None or ending.stop_reason == "cancelled":
            return None
        self._bridge.note(
            at,
            "V12",
            "agent",
            "a cancelled turn ended with another stop reason",
            None,
            "LC-17",
            action="repaired",
            session=change.session.id,
        )
        return ending.stop_reason
