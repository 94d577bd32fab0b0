"""`session/update` notifications of a v1 agent for a v2 client, one variant a method (bridge §6).

The hot path of a bridge: each update costs one table look-up, its translation, and one fit
against the v2 schema, which also repairs spellings and leaves out malformed optional fields.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from acp_proxy.acp.fitting import Note
from acp_proxy.filters.base import Step, ToClient
from acp_proxy.filters.translate import commands, config_options, plans, tools
from acp_proxy.filters.translate.bridge import UPDATE, Bridge
from acp_proxy.filters.translate.chunk_frames import named
from acp_proxy.filters.translate.content import content_block, content_list
from acp_proxy.filters.translate.meta import marked
from acp_proxy.filters.translate.paths import is_absolute
from acp_proxy.filters.translate.prompts import Prompts
from acp_proxy.filters.translate.told import ToldSession
from acp_proxy.jsonrpc.message import Json, Notification, notification

# What the turn itself puts out: only these show that the agent has taken the prompt (bridge §12).
_EVIDENCE: Final = frozenset(
    {"agent_message_chunk", "agent_thought_chunk", "tool_call", "tool_call_update", "plan", "plan_update"}
)
_REPLAYED: Final = frozenset({"user_message_chunk", "plan_removed", *_EVIDENCE})
_RFC3339: Final = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(?:\.\d+)?(?:[Zz]|[+-]\d\d:\d\d)")

Variant = Callable[[ToldSession, Json], Json | None]


class Updates:
    """Translates the updates of all sessions of one bridge."""

    def __init__(self, bridge: Bridge, prompts: Prompts) -> None:
        self._bridge = bridge
        self._prompts = prompts
        self._variants: dict[str, Variant] = {
            "user_message_chunk": self._chunk,
            "agent_message_chunk": self._chunk,
            "agent_thought_chunk": self._chunk,
            "tool_call": self._tool,
            "tool_call_update": self._tool,
            "plan": self._plan,
            "available_commands_update": self._commands,
            "current_mode_update": self._mode,
            "config_option_update": self._config,
            "usage_update": self._usage,
            "compaction_update": self._compaction,
            "compaction_summary_chunk": self._with_content,
            "subagent_update": self._subagent,
        }

    def take(self, message: Notification, at: float) -> Notification | list[Step] | None:
        """Translate an update; what it owes the client before it (the acknowledgement) precedes it."""
        params = message.body.get("params")
        if type(params) is not dict:
            self._malformed(message, None, "params must be an object", at)
            return None
        session_id, update = params.get("sessionId"), params.get("update")
        if type(session_id) is not str or type(update) is not dict:
            self._malformed(message, None, "sessionId and update are required", at)
            return None
        told = self._bridge.sessions.get(session_id) or self._bridge.session(session_id)
        if told.closed:
            self._bridge.note(
                at,
                "V24",
                "agent",
                "update after the session was closed",
                message,
                "LC-50",
                action="repaired",
                session=session_id,
            )
            return None
        if told.settling is not None:
            self._put_off(told, at)
        tag = update.get("sessionUpdate")
        variant = self._variants.get(tag) if type(tag) is str else None
        translated = update if variant is None else variant(told, update)
        if translated is None:
            return None
        checked = self._bridge.fit("SessionUpdate", translated)
        if checked.problem is not None:
            self._malformed(message, session_id, f"{tag}: {checked.problem}", at)
            return None
        if checked.notes:
            params = self._repaired(message, params, translated, checked.notes, at)
        translated = checked.value
        if told.swallowing and tag in _REPLAYED:
            return None
        if tag == "session_info_update":
            self._info(session_id, translated, message, at)
        if translated is update and message.body.get("jsonrpc") == "2.0":
            out = message
        else:
            out = Notification({**message.body, "jsonrpc": "2.0", "params": {**params, "update": translated}})
            if variant == self._chunk and "messageId" not in update:
                out.frame = named(message.frame, update, translated)
        if tag == "subagent_update" and self._bridge.options.unstable:
            return self._child(out, translated)
        turn = told.turn
        if turn is None:
            return out
        if tag == "user_message_chunk":
            return self._user_chunk(told, out)
        if tag not in _EVIDENCE:
            return out
        if not turn.inserted:
            return [*self._prompts.insert(told), ToClient(out)]
        if turn.echo is not None and turn.echo.pending:
            held = turn.echo.release()
            return [*(ToClient(notification(UPDATE, told_late)) for told_late in held), ToClient(out)]
        return out

    # ------------------------------------------------------------ variants

    def _chunk(self, told: ToldSession, update: Json) -> Json | None:
        tag = update["sessionUpdate"]
        content = update.get("content")
        block = content_block(content)
        message_id = update.get("messageId")
        if type(message_id) is str:
            told.ids.given(tag, message_id)
            return update if block is content else {**update, "content": block}
        if type(content) is not dict:
            return update
        return {**update, "messageId": told.ids.of_chunk(tag), "content": block}

    def _tool(self, told: ToldSession, update: Json) -> Json | None:
        tool_id = update.get("toolCallId")
        if type(tool_id) is str:
            title = update.get("title")
            if tool_id not in told.titles:
                told.titles[tool_id] = title if type(title) is str else None
                told.ids.boundary()
            elif type(title) is str:
                told.titles[tool_id] = title
        translated: Json = tools.tool_call(update, told.cwd, told.terminals)
        return translated

    def _plan(self, told: ToldSession, update: Json) -> Json | None:
        translated: Json = plans.plan(update)
        return translated

    def _commands(self, told: ToldSession, update: Json) -> Json | None:
        translated: Json = commands.available_commands(update)
        return translated

    def _mode(self, told: ToldSession, update: Json) -> Json | None:
        mode = config_options.current_mode(update)
        if mode is None or not told.config.set_mode(mode):
            return None
        return self._all_options(
            told, {k: v for k, v in update.items() if k not in ("currentModeId", "modeId")}
        )

    def _config(self, told: ToldSession, update: Json) -> Json | None:
        if type(update.get("configOptions")) is not list:
            return update
        told.config.learn(update)
        return self._all_options(told, update)

    def _all_options(self, told: ToldSession, update: Json) -> Json:
        return {**update, "sessionUpdate": "config_option_update", "configOptions": told.config.full() or []}

    def _usage(self, told: ToldSession, update: Json) -> Json | None:
        if "cost" in update and update["cost"] is None:
            return {key: value for key, value in update.items() if key != "cost"}
        return update

    def _compaction(self, told: ToldSession, update: Json) -> Json | None:
        summary = update.get("summary")
        translated = content_list(summary)
        return update if translated is summary else {**update, "summary": translated}

    def _with_content(self, told: ToldSession, update: Json) -> Json | None:
        content = update.get("content")
        translated = content_block(content)
        return update if translated is content else {**update, "content": translated}

    def _subagent(self, told: ToldSession, update: Json) -> Json | None:
        cwd = update.get("cwd")
        if type(cwd) is str and not is_absolute(cwd):
            return {key: value for key, value in update.items() if key != "cwd"}
        return update

    # ------------------------------------------------------------ particulars

    def _child(self, out: Notification, update: Json) -> list[Step]:
        """What the parent says of a child's state is also the child's own snapshot (LC-81)."""
        steps: list[Step] = [ToClient(out)]
        state = update.get("state")
        if type(state) is dict and type(state.get("state")) is str:
            steps.append(self._bridge.update(update["sessionId"], {"sessionUpdate": "state_update", **state}))
        return steps

    def _user_chunk(self, told: ToldSession, out: Notification) -> Notification | list[Step] | None:
        """A user chunk inside a turn is the agent's echo of the prompt, or something of its own (§5, step 7)."""
        turn = told.turn
        assert turn is not None
        record = self._bridge.view.get(told.id)
        if record is not None and record.replays:
            return out
        update = out.params["update"]
        if not turn.inserted:
            return [ToClient(out), *self._prompts.adopt(told, turn, update["messageId"])]
        if turn.adopted is not None or turn.echo is None:
            return out
        return [
            ToClient(notification(UPDATE, params)) for params in turn.echo.take(out.params, update["content"])
        ]

    def _info(self, session_id: str, update: Json, message: Notification, at: float) -> None:
        """A session's name is remembered for the lists to come; null takes it away."""
        if "title" in update:
            title = update["title"]
            self._bridge.remembered.titled(session_id, title if type(title) is str else None)
        if not is_timestamp(update.get("updatedAt")):
            self._bridge.note(
                at, "V54", "agent", "updatedAt is no RFC 3339 time", message, "bridge 9", session=session_id
            )

    def _put_off(self, told: ToldSession, at: float) -> None:
        settling = told.settling
        assert settling is not None
        self._bridge.alarms.set(("settle", told.id), min(at + settling.quiet, settling.latest))

    def _repaired(
        self, message: Notification, params: Json, given: Json, notes: list[Note], at: float
    ) -> Json:
        """Say what was repaired; a spelling that was changed is kept beside the update (bridge §10)."""
        respelled = {path: _at(given, path) for path, what in notes if what == "respelled"}
        rest = [path for path, what in notes if what != "respelled"]
        session_id = params["sessionId"]
        if respelled:
            text = f"spelling repaired at {', '.join(respelled)}"
            self._bridge.note(
                at, "V34", "agent", text, message, "bridge 10", action="repaired", session=session_id
            )
            params = marked(params, "orig", respelled)
        if rest:
            text = f"malformed optional fields left out: {', '.join(rest)}"
            self._bridge.note(
                at, "V42", "agent", text, message, "lifecycle 2.5", action="repaired", session=session_id
            )
        return params

    def _malformed(self, message: Notification, session_id: str | None, why: str, at: float) -> None:
        self._bridge.note(
            at,
            "V42",
            "agent",
            f"session/update {why}",
            message,
            "lifecycle 2.5",
            action="repaired",
            session=session_id,
        )


def _at(value: Any, path: str) -> Any:
    """What stands at a path of keys and indices."""
    for part in path.split("/"):
        if isinstance(value, dict):
            value = value.get(part)
        elif isinstance(value, list) and part.isdigit() and int(part) < len(value):
            value = value[int(part)]
        else:
            return None
    return value


def is_timestamp(stamp: Any) -> bool:
    """Whether a value may stand in `updatedAt`: absent, null, or a date and time with an offset (RFC 3339).

    Real agents leave the offset out. Such a value passes as it is: the schema tells a receiver to read
    what it cannot parse as absent, and most can parse it, so leaving it out here would only lose it.
    """
    return stamp is None or (type(stamp) is str and _RFC3339.fullmatch(stamp) is not None)
