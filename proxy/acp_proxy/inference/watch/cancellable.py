"""Cancelling one tool call or terminal that does not offer it (V28). Source: LC-60, LC-61."""

from __future__ import annotations

from acp_proxy.inference.watch.children import offers_cancel
from acp_proxy.inference.watch.detector import CLIENT, Detector
from acp_proxy.inference.watch.record import SessionRecord, TerminalRecord, ToolRecord
from acp_proxy.jsonrpc.message import Json, Request


class Cancellable(Detector):
    """Follows the `capabilities` of tool calls and terminals."""

    __slots__ = ()

    def terminal(self, session: SessionRecord, update: Json) -> None:
        """A `terminal_update`; what it does not say stays as it was."""
        terminal_id = update.get("terminalId")
        if type(terminal_id) is not str:
            return
        record = session.terminals.get(terminal_id)
        if record is None:
            record = session.terminals[terminal_id] = TerminalRecord()
        if update.get("exitStatus") is not None:
            record.exited = True
        if "capabilities" in update:
            record.cancellable = offers_cancel(update["capabilities"])

    def tool(self, record: ToolRecord, update: Json) -> None:
        """A `tool_call_update`."""
        if "capabilities" in update:
            record.cancellable = offers_cancel(update["capabilities"])

    def asked(self, session: SessionRecord, message: Request) -> None:
        """The client cancels one entity."""
        params = message.params
        if message.method == "tool_call/cancel":
            tool = session.tools.get(params.get("toolCallId", ""))
            offered = tool is not None and tool.cancellable and not tool.final
        else:
            terminal = session.terminals.get(params.get("terminalId", ""))
            offered = terminal is not None and terminal.cancellable and not terminal.exited
        if not offered:
            text = f"{message.method} for something that does not offer it"
            self._tell("V28", session, text, message, leg=CLIENT)
