"""What the bundled v1 agent does during a turn: one script for each prompt it knows.

Source: lifecycle §2.6, bridge §11 (v1 shapes).
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Any

Message = dict[str, Any]

STREAM_INTERVAL_SECONDS = 0.2


class ModelError(Exception):
    """The model behind the agent fails; its text becomes the error of the prompt."""


class Turn:
    """What a script can do during one prompt; `cancelled` is set once the client wants the turn to stop.

    `notify` and `request` send a method with its params; a request's response arrives in the returned queue.
    """

    def __init__(
        self,
        session_id: str,
        notify: Callable[[str, Message], None],
        request: Callable[[str, Message], queue.SimpleQueue[Message]],
    ) -> None:
        self.session_id = session_id
        self.cancelled = threading.Event()
        self._notify = notify
        self._request = request

    def say(self, text: str) -> None:
        """Stream a chunk of the answer. Without a message id: v1 leaves it optional."""
        self._update({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}})

    def begin(self, tool_id: str, title: str, kind: str, status: str) -> None:
        """Announce a tool call with its first status."""
        tool = {"toolCallId": tool_id, "title": title, "kind": kind, "status": status}
        self._update({"sessionUpdate": "tool_call", **tool})

    def move(self, tool_id: str, status: str) -> None:
        """Report a new status of an announced tool call."""
        self._update({"sessionUpdate": "tool_call_update", "toolCallId": tool_id, "status": status})

    def ask(self, tool_id: str, title: str) -> Callable[[], bool]:
        """Ask the user about a tool call; calling the result waits for the answer.

        Every answer but an explicit yes is a no. After `session/cancel` nobody waits forever: a v1 client has
        to answer what is still open (LC-92).
        """
        answers = self._request(
            "session/request_permission",
            {
                "sessionId": self.session_id,
                "toolCall": {"toolCallId": tool_id, "title": title},
                "options": [
                    {"optionId": "yes", "name": "Allow", "kind": "allow_once"},
                    {"optionId": "no", "name": "Reject", "kind": "reject_once"},
                ],
            },
        )

        def allowed() -> bool:
            outcome = (answers.get().get("result") or {}).get("outcome") or {}
            return outcome.get("outcome") == "selected" and outcome.get("optionId") == "yes"

        return allowed

    def _update(self, update: Message) -> None:
        self._notify("session/update", {"sessionId": self.session_id, "update": update})


def stream_text(turn: Turn) -> None:
    """Two chunks. Nothing tells the second one from a pause in the middle of a longer answer."""
    turn.say("I know protocol v1 only. ")
    turn.say("You cannot hear me stop.")


def ask_permission(turn: Turn) -> None:
    """One tool that needs a yes. That the whole turn now waits for the user stays unsaid."""
    turn.begin("t1", "Delete build/", "delete", "pending")
    allowed = turn.ask("t1", "Delete build/")
    if allowed():
        turn.move("t1", "in_progress")
        turn.move("t1", "completed")
    else:
        turn.move("t1", "failed")


def run_in_parallel(turn: Turn) -> None:
    """Two tools; one needs a yes while the other still works.

    The request alone does not mean that the user holds things up: that is so only from the moment the search
    is through, and nothing in this traffic says it in so many words.
    """
    turn.begin("t1", "Search sources", "search", "in_progress")
    turn.begin("t2", "Run tests", "execute", "in_progress")
    allowed = turn.ask("t2", "Run tests")
    turn.move("t1", "completed")
    turn.move("t2", "completed" if allowed() else "failed")


def stream_until_cancelled(turn: Turn) -> None:
    """Chunk after chunk until the client has had enough, then one last update before the response (LC-91)."""
    turn.say("Thinking... ")
    while not turn.cancelled.wait(STREAM_INTERVAL_SECONDS):
        turn.say("Thinking... ")
    turn.say("Stopped.")


def fail_midway(turn: Turn) -> None:
    """Some output, then the model is gone. To a v2 client that prompt is long acknowledged."""
    turn.say("Let me look at that. ")
    raise ModelError("model unavailable")


def explain(turn: Turn) -> None:
    """Any other prompt: say which ones are known."""
    turn.say(f"Try one of these: {', '.join(SCRIPTS)}.")


SCRIPTS: dict[str, Callable[[Turn], None]] = {
    "text": stream_text,
    "permission": ask_permission,
    "parallel": run_in_parallel,
    "cancel": stream_until_cancelled,
    "error": fail_midway,
}
