"""A v1 agent that has its client read and write files and run commands; standard library only.

A prompt's text is one of: `work` (read in.txt, write OUT.TXT in capitals, run a command to its end and show its
terminal), `stay` (start a command that goes on, and says its pid), `look` (say what became of that
one), `peek PATH` (read that path). What it finds is said as one message of JSON.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
from typing import Any

Json = dict[str, Any]

COMMAND = "import sys; print('made'); print('a warning', file=sys.stderr); print(open('OUT.TXT').read())"
GOES_ON = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"


class Agent:
    """One connection; `ask` waits for the client, and prompts that come meanwhile wait too."""

    def __init__(self) -> None:
        self.ids = itertools.count(1)
        self.offered: Json = {}
        self.cwd = ""
        self.terminal = ""

    def send(self, **body: Any) -> None:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **body}) + "\n")
        sys.stdout.flush()

    def ask(self, method: str, **params: Any) -> Json:
        """Send a request about the session and return the answer, result or error."""
        token = f"a{next(self.ids)}"
        self.send(id=token, method=method, params={"sessionId": "s1", **params})
        for line in sys.stdin:
            body: Json = json.loads(line)
            if body.get("id") == token and "method" not in body:
                return body
        raise SystemExit(0)

    def update(self, tag: str, **fields: Any) -> None:
        self.send(
            method="session/update", params={"sessionId": "s1", "update": {"sessionUpdate": tag, **fields}}
        )

    def python(self, code: str) -> str:
        made = self.ask("terminal/create", command=sys.executable, args=["-S", "-E", "-u", "-c", code])
        terminal: str = made["result"]["terminalId"]
        return terminal

    def work(self) -> Json:
        read = self.ask("fs/read_text_file", path=f"{self.cwd}/in.txt")
        text = read["result"]["content"].upper()
        wrote = self.ask("fs/write_text_file", path=f"{self.cwd}/OUT.TXT", content=text)
        terminal = self.python(COMMAND)
        shown = [{"type": "terminal", "terminalId": terminal}]
        self.update("tool_call", toolCallId="t1", title="Run", status="in_progress", content=shown)
        status = self.ask("terminal/wait_for_exit", terminalId=terminal)
        output = self.ask("terminal/output", terminalId=terminal)
        released = self.ask("terminal/release", terminalId=terminal)
        self.update("tool_call_update", toolCallId="t1", status="completed")
        answers = {"wrote": wrote, "status": status, "output": output, "released": released}
        return {name: answer.get("result") for name, answer in answers.items()}

    def look(self) -> Json:
        return self.ask("terminal/output", terminalId=self.terminal)["result"]

    def prompted(self, text: str) -> Json:
        word, _, path = text.partition(" ")
        if word == "work":
            return self.work()
        if word == "stay":
            self.terminal = self.python(GOES_ON)
            return {"terminalId": self.terminal}
        if word == "look":
            return self.look()
        return self.ask("fs/read_text_file", path=path)["error"]

    def serve(self) -> None:
        for line in sys.stdin:
            body: Json = json.loads(line)
            method, params = body.get("method"), body.get("params") or {}
            if method == "initialize":
                self.offered = params["clientCapabilities"]
                self.send(id=body["id"], result={"protocolVersion": 1, "agentCapabilities": {}})
            elif method == "session/new":
                self.cwd = params["cwd"]
                self.send(id=body["id"], result={"sessionId": "s1"})
            elif method == "session/prompt":
                said = {
                    "offered": self.offered,
                    "pid": os.getpid(),
                    "found": self.prompted(params["prompt"][0]["text"]),
                }
                self.update("agent_message_chunk", content={"type": "text", "text": json.dumps(said)})
                self.send(id=body["id"], result={"stopReason": "end_turn"})


if __name__ == "__main__":
    Agent().serve()
