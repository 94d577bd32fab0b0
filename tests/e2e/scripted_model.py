"""A model on loopback that does what the last word of the user says; chat completions as OpenAI streams them.

Words, in the text of the last user message after `SCRIPT:`:

    text      a few words
    edit      one tool call that needs a permission (`touch`), then text
    parallel  two such calls in one message, then text
    wait      a word, and then nothing until the client goes away
    fail      status 400 instead of an answer

Every request without that mark, such as one for a title, gets a word.
"""

from __future__ import annotations

import contextlib
import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Json = dict[str, Any]

SCRIPT = re.compile(r"SCRIPT:(\w+)")
SAID = ("Hello ", "from ", "the ", "model.")
ENDS = 30.0


class ScriptedModel(ThreadingHTTPServer):
    """Serves on a port of its own choice; `asked` are the bodies of the requests, `paths` their paths."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.asked: list[Json] = []
        self.paths: list[str] = []
        self.ended = threading.Event()

    @property
    def base_url(self) -> str:
        """Where the API starts."""
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is what `wait` is for."""


class _Answer(BaseHTTPRequestHandler):
    server: ScriptedModel

    def log_message(self, *args: object) -> None:
        """Say nothing on stderr."""

    def do_GET(self) -> None:
        self.server.paths.append(self.path)
        self.send_error(404)

    def do_POST(self) -> None:
        body: Json = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.paths.append(self.path)
        self.server.asked.append(body)
        messages = body["messages"]
        last_user = next(n for n in range(len(messages) - 1, -1, -1) if messages[n]["role"] == "user")
        found = SCRIPT.search(json.dumps(messages[last_user]["content"]))
        word = found[1] if found else "title"
        done = any(message["role"] == "tool" for message in messages[last_user:])
        if word == "fail":
            self._fail()
            return
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        if word == "wait":
            self._delta({"role": "assistant", "content": "Waiting"})
            self._until_left()
        elif word in ("edit", "parallel") and not done:
            names = ["a"] if word == "edit" else ["a", "b"]
            calls = [_call(index, name, len(messages)) for index, name in enumerate(names)]
            self._delta({"role": "assistant", "content": "", "tool_calls": calls})
            self._end("tool_calls")
        elif word == "title":
            self._delta({"role": "assistant", "content": "Title"})
            self._end("stop")
        else:
            for said in SAID:
                self._delta({"role": "assistant", "content": said})
            self._end("stop")

    def _fail(self) -> None:
        data = json.dumps(
            {"error": {"message": "the model says no", "type": "invalid_request_error"}}
        ).encode()
        self.send_response(400)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _until_left(self) -> None:
        """Ask the socket for what it can only say once: that the other end is closed."""
        self.connection.settimeout(ENDS)
        with contextlib.suppress(OSError):
            self.connection.recv(1)
        self.server.ended.set()

    def _delta(self, delta: Json) -> None:
        self._event({"choices": [{"index": 0, "delta": delta, "finish_reason": None}]})

    def _end(self, reason: str) -> None:
        usage = {"prompt_tokens": 10, "completion_tokens": 20, "total_tokens": 30}
        self._event({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}], "usage": usage})
        self.wfile.write(b"data: [DONE]\n\n")

    def _event(self, body: Json) -> None:
        whole = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "scripted", **body}
        self.wfile.write(b"data: " + json.dumps(whole).encode() + b"\n\n")
        self.wfile.flush()


def _call(index: int, name: str, turn: int) -> Json:
    arguments = {"command": f"touch {name}.txt", "description": f"make {name}", "is_background": False}
    return {
        "index": index,
        "id": f"call-{turn}-{name}",
        "type": "function",
        "function": {"name": "run_shell_command", "arguments": json.dumps(arguments)},
    }


@contextlib.contextmanager
def scripted_model() -> Iterator[ScriptedModel]:
    """A model for the length of the block."""
    with ScriptedModel() as model:
        thread = threading.Thread(target=model.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield model
        finally:
            model.shutdown()
            thread.join()
