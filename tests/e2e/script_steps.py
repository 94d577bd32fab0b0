"""Steps for the scripts of `scripted_agent.py`, as a test writes them."""

from __future__ import annotations

from typing import Any

OPTIONS = [
    {"optionId": "ok", "name": "Yes", "kind": "allow_once"},
    {"optionId": "no", "name": "No", "kind": "reject_once"},
]
PERMISSION = {"sessionId": "$session", "toolCall": {"toolCallId": "t1"}, "options": OPTIONS}


def chunk(text: str = "hi") -> list[Any]:
    """A step of a script: a message chunk of the agent."""
    return ["update", {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}]


def tool(status: str, tag: str = "tool_call") -> list[Any]:
    """A step of a script: a tool of the agent."""
    return ["update", {"sessionUpdate": tag, "toolCallId": "t1", "title": "t", "status": status}]


def raw(data: bytes) -> list[Any]:
    """A step of a script: bytes as they are."""
    return ["raw", data.decode("latin-1")]
