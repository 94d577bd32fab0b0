"""A v1 agent on the official Python SDK that takes no offer but version 1, and only the first one it gets."""

from __future__ import annotations

import asyncio
from typing import Any

from acp.interfaces import Client
from acp.schema import AllowedOutcome, PermissionOption, ToolCallUpdate

from acp import (
    PROTOCOL_VERSION,
    Agent,
    InitializeResponse,
    NewSessionResponse,
    PromptResponse,
    RequestError,
    run_agent,
    start_tool_call,
    text_block,
    update_agent_message,
    update_tool_call,
)

OPTIONS = [
    PermissionOption(option_id="yes", name="Allow", kind="allow_once"),
    PermissionOption(option_id="no", name="Reject", kind="reject_once"),
]


class StrictAgent(Agent):
    """Every prompt runs one tool, by permission."""

    _client: Client
    _asked = False

    def on_connect(self, conn: Client) -> None:
        self._client = conn

    async def initialize(self, protocol_version: int, **kwargs: Any) -> InitializeResponse:
        if self._asked:
            raise RequestError.invalid_request({"reason": "initialize was sent before"})
        self._asked = True
        if protocol_version != PROTOCOL_VERSION:
            raise RequestError.invalid_params({"protocolVersion": protocol_version})
        return InitializeResponse(protocol_version=PROTOCOL_VERSION)

    async def new_session(self, cwd: str, **kwargs: Any) -> NewSessionResponse:
        return NewSessionResponse(session_id="strict-1")

    async def prompt(self, session_id: str, prompt: list[Any], **kwargs: Any) -> PromptResponse:
        tell = self._client.session_update
        await tell(session_id, start_tool_call("tool-1", "Run the tests", kind="execute", status="pending"))
        answer = await self._client.request_permission(
            session_id=session_id, tool_call=ToolCallUpdate(tool_call_id="tool-1"), options=OPTIONS
        )
        allowed = isinstance(answer.outcome, AllowedOutcome) and answer.outcome.option_id == "yes"
        await tell(session_id, update_tool_call("tool-1", status="completed" if allowed else "failed"))
        await tell(session_id, update_agent_message(text_block("All green." if allowed else "Not run.")))
        return PromptResponse(stop_reason="end_turn")


if __name__ == "__main__":
    asyncio.run(run_agent(StrictAgent()))
