"""Runs a real client and a real agent with `acp-proxy wrap` between them, and keeps what passed on either side."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from peer_installs import PEERS, NodePeers, PythonPeers
from wire_log import Frame, read_wire

CONVERSATION_SECONDS = 30
PROXY = (sys.executable, "-m", "acp_proxy")
TEE = (sys.executable, "-E", "-S", str(PEERS / "tee.py"))


class Conversation(NamedTuple):
    """What a client observed, what passed on both sides of the proxy, and what the proxy found."""

    store: Path
    events: list[dict[str, Any]]
    client_wire: list[Frame]
    agent_wire: list[Frame]
    findings: list[dict[str, Any]]
    output: str
    complaints: str
    """The stderr of the client alone: its SDK writes there what it could not take."""
    stderr: str
    """The stderr of the proxy and the agent, where the client keeps it apart."""

    def named(self, event: str) -> list[dict[str, Any]]:
        """The observations of one kind."""
        return [each for each in self.events if each["event"] == event]

    def only(self, event: str) -> dict[str, Any]:
        """The one observation of its kind."""
        (found,) = self.named(event)
        return found


class Stage:
    """A folder for conversations, with the scripts of `peers/` beside the packages they import."""

    def __init__(self, folder: Path, node: NodePeers, python: PythonPeers) -> None:
        self.folder = folder
        self._node = str(node.node)
        self._python = python
        self._scripts = folder / "scripts"
        self._scripts.mkdir()
        for script in PEERS.glob("*.mjs"):
            shutil.copy(script, self._scripts)
        (self._scripts / "node_modules").symlink_to(node.modules)

    def script(self, name: str) -> list[str]:
        """The command of a script of ours."""
        if name.endswith(".mjs"):
            return [self._node, str(self._scripts / name)]
        return [str(self._python.python), str(PEERS / name)]

    def example(self, name: str) -> list[str]:
        """The command of an example of the Python SDK."""
        return [str(self._python.python), str(self._python.examples / name)]

    def converse(
        self,
        client: Sequence[str],
        agent: Sequence[str],
        *,
        typed: str = "",
        session: str = "",
        store: Path | None = None,
    ) -> Conversation:
        """Let `client` talk to `agent` to the end of what it wants; it gets the command to run as arguments.

        `typed` is its stdin, `session` is one to be resumed, `store` an earlier agent's memory of it.
        """
        taken = len(list(self.folder.glob("talk-*")))
        folder = self.folder / f"talk-{taken + 1}"
        folder.mkdir()
        store = store or folder / "sessions.json"
        logs = {name: folder / name for name in ("client.wire", "agent.wire", "findings", "stderr")}
        for log in logs.values():
            log.touch()
        wrapped = [*PROXY, "wrap", "--findings", str(logs["findings"]), "--"]
        command = [
            *client,
            *(*TEE, str(logs["client.wire"]), *wrapped),
            *(*TEE, str(logs["agent.wire"]), *agent),
        ]
        environment = {
            **os.environ,
            "PEER_SESSION": session,
            "PEER_STDERR": str(logs["stderr"]),
            "PEER_STORE": str(store),
        }
        ran = subprocess.run(
            command,
            cwd=folder,
            env=environment,
            input=typed,
            capture_output=True,
            text=True,
            timeout=CONVERSATION_SECONDS,
            check=False,
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr + logs["stderr"].read_text()
        return Conversation(
            store,
            _json_lines(ran.stdout),
            read_wire(logs["client.wire"]),
            read_wire(logs["agent.wire"]),
            _json_lines(logs["findings"].read_text()),
            ran.stdout,
            ran.stderr,
            logs["stderr"].read_text(),
        )


def _json_lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]
