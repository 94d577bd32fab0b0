"""An independent v2 client that knows the rules of lifecycle §1 and trusts nobody: what it may never be told.

It is written from the rules, not from the proxy: it sees what a client sees and says, keeps only that, and
names the rule that a message breaks. Only what the catalogue calls repairable is checked.
"""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]

OUTPUT = ("agent_message_chunk", "agent_message", "agent_thought_chunk", "plan_update")
USER = ("user_message", "user_message_chunk")


class Prompt:
    """A prompt as its sender sees it."""

    def __init__(self, content: list[Any], busy: bool) -> None:
        self.content = content
        self.busy = busy
        self.result_id: str | None = None
        self.echo_id: str | None = None
        self.cancelled = False
        self.due = False


class ModelClient:
    """One session, `s1`, from a client's point of view; `broken` lists what it was told against the rules."""

    def __init__(self) -> None:
        self.broken: list[str] = []
        self.state = "idle"
        self.inserted = False
        self.cancelling = False
        self.closed = False
        self.native = False
        self.spoken = False
        self.background = False
        self.open: dict[Any, Json] = {}
        self.prompts: dict[Any, Prompt] = {}
        self.rejected: list[list[Any]] = []
        self.asked: dict[Any, Json] = {}
        self.had_wait = False
        self.tools: set[str] = set()
        self.resuming: Any = None
        self.resume_state: str | None = None
        self.replayed_after_state = False

    def fails(self, rule: str, why: str) -> None:
        self.broken.append(f"{rule}: {why}")

    # ------------------------------------------------------------ what it says

    def sent(self, body: Json) -> None:
        """The client itself has said this."""
        method = body.get("method")
        if "id" in body and method is not None:
            self.open[body["id"]] = body
        if method == "session/prompt":
            self.spoken = False
            self.prompts[body["id"]] = Prompt(body["params"]["prompt"], self.state != "idle")
        elif method in ("session/cancel", "session/close"):
            waiting = any(prompt.result_id is None for prompt in self.prompts.values())
            self.cancelling = self.cancelling or self.state != "idle" or waiting or self.inserted
            for prompt in self.prompts.values():
                prompt.cancelled = True
        elif method == "session/resume":
            self.resuming, self.resume_state, self.replayed_after_state = body["id"], None, False
            self.closed = False
        elif method is None:
            self.asked.pop(body["id"], None)

    # ------------------------------------------------------------ what it is told

    def told(self, body: Json) -> None:
        """The client is told this."""
        if body.get("method") == "session/update":
            marks = body["params"].get("_meta", {}).get("acp-proxy", {})
            self._update(body["params"]["update"], bool(marks.get("synthetic")))
        elif "method" in body and "id" in body:
            if self.closed:
                self.fails("LC-50", "a request after close")
            if body["id"] in self.asked:
                self.fails("LC-73", "a request id used twice in flight")
            self.asked[body["id"]] = body
            self.had_wait = True
        elif "method" not in body:
            self._response(body)

    def _update(self, update: Json, synthetic: bool) -> None:
        if self.closed:
            self.fails("LC-50", f"{update['sessionUpdate']} after close")
        tag = update["sessionUpdate"]
        if tag == "state_update":
            self.native = self.native or not synthetic
            self._state(update)
        elif tag in USER:
            self._user(update)
        elif tag in OUTPUT or (tag == "tool_call_update" and update["toolCallId"] not in self.tools):
            self.tools.add(update.get("toolCallId", ""))
            self._output()

    def _output(self) -> None:
        self.spoken = True
        if self.resuming is not None:
            self.replayed_after_state = self.resume_state == "idle"
            return
        if self.state == "idle" and self.inserted:
            self.fails("LC-01", "output of a prompt while idle")
        if self.state == "requires_action" and self.had_wait and not self.asked and not self.cancelling:
            self.fails("LC-10", "work goes on in requires_action")

    def _state(self, update: Json) -> None:
        state = update["state"]
        if self.background and "background" not in update:
            self.fails("LC-20", "background is no longer reported")
        if self.resuming is not None:
            self.resume_state, self.replayed_after_state = state, False
        if state == "idle":
            if self.state != "idle":
                if self.cancelling and update.get("stopReason") != "cancelled":
                    self.fails("LC-17", "cancelled work ended otherwise")
                self._echoes_due()
                for prompt in self.prompts.values():
                    prompt.due = prompt.due or (self.cancelling and prompt.cancelled)
            self.inserted = self.cancelling = False
        if state == "requires_action":
            self.had_wait = bool(self.asked)
        self.state = state

    def _echoes_due(self) -> None:
        for prompt in self.prompts.values():
            if prompt.result_id is not None and prompt.echo_id is None and not prompt.busy:
                self.fails("LC-31", "an inserted prompt was not echoed by the idle that follows")

    def _user(self, update: Json) -> None:
        content = update["content"]
        whole = content if isinstance(content, list) else [content]
        for prompt in self.prompts.values():
            if prompt.content == whole and prompt.echo_id is None:
                prompt.echo_id = update["messageId"]
                if prompt.result_id is not None and prompt.result_id != prompt.echo_id:
                    self.fails("LC-31", "answer and echo carry different ids")
                self.inserted = self.inserted or prompt.result_id is None
                return
        if self.resuming is not None:
            self.replayed_after_state = self.resume_state == "idle"
            return
        if whole in self.rejected:
            self.fails("LC-32", "a rejected prompt was inserted")

    def _response(self, body: Json) -> None:
        asked = self.open.pop(body["id"], None)
        if asked is None:
            self.fails("LC-70", "a response to nothing open")
            return
        method = asked["method"]
        if method == "session/prompt":
            self._prompt_answered(body)
        elif method == "session/close":
            if "error" in body:
                if body["error"]["code"] == -32002:
                    self.fails("LC-52", "closing an unknown session failed")
                return
            if self.state in ("running", "requires_action"):
                self.fails("LC-50", "closed while work was open")
            self.closed = True
            self.state, self.inserted, self.cancelling = "idle", False, False
            for prompt in self.prompts.values():
                prompt.due = True
                prompt.busy = True  # nothing more can be told of it, its echo neither
        elif method == "session/resume":
            self.resuming = None
            if "error" not in body:
                if self.resume_state is None:
                    self.fails("LC-14", "resume without a snapshot")
                if self.replayed_after_state:
                    self.fails("LC-14", "replay after the snapshot")

    def _prompt_answered(self, body: Json) -> None:
        prompt = self.prompts[body["id"]]
        if "error" in body:
            if prompt.echo_id is not None:
                self.fails("LC-32", "an error after insertion")
            self.rejected.append(prompt.content)
            del self.prompts[body["id"]]
            waiting = any(other.cancelled and other.result_id is None for other in self.prompts.values())
            if self.state == "idle" and not self.inserted and not waiting:
                self.cancelling = False  # there was nothing left to cancel
            return
        message_id = body["result"].get("messageId")
        if not isinstance(message_id, str):
            self.fails("LC-30", "a prompt answered without a message id")
            return
        if prompt.echo_id is not None and prompt.echo_id != message_id:
            self.fails("LC-31", "answer and echo carry different ids")
        prompt.result_id = message_id
        prompt.due = False
        # An agent that tells no states and answers late means the end by it, as with a stop reason.
        ended = "stopReason" in body["result"] or (not self.native and self.spoken)
        if ended:
            self.inserted = False
        elif prompt.echo_id is None:
            self.inserted = True

    def waited(self) -> None:
        """A good while has passed."""
        for request_id, prompt in self.prompts.items():
            if prompt.due and prompt.result_id is None and request_id in self.open:
                self.fails("LC-42", "a held prompt was never answered")
