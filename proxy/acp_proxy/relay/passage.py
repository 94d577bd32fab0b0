"""Passes text chunks on without decoding them, where nothing can depend on what they say.

Small lines are told by one pattern, neighboring ones as a block (`shortcut`). Engine and watch hear of
them as a whole; a chunk that owes something, or may be a breach, takes the ordinary way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from acp_proxy.acp.version import Version
from acp_proxy.inference.engine import Engine
from acp_proxy.inference.watch.watch import Watch
from acp_proxy.jsonrpc import codec
from acp_proxy.jsonrpc.framing import Recognize, Run
from acp_proxy.relay.shortcut import (
    TextRun,
    end_of_chunks,
    end_of_named_chunks,
    end_of_nameless_chunks,
    whose,
)


class NamesRuns(Protocol):
    """A translator that can name the message a run of chunks belongs to."""

    def text_run(self, session_id: str, tag: str) -> str | None:
        """The message id, None when the chunks must be taken one by one."""


class Passage:
    """The short way from the agent to the client; closed until the versions are settled."""

    def __init__(
        self,
        engine: Engine,
        watch: Watch,
        *,
        may_pass: Callable[[bytes], bool],
        count: Callable[[int], int],
        send: Callable[[bytes], None],
        take: Callable[[bytes, int, float], None],
    ) -> None:
        """`may_pass` is asked about each block of lines, and with none about the way as such.

        `count` numbers received lines, `send` writes to the client, `take` is the ordinary way in.
        """
        self._end_of_run: Recognize | None = None
        self._translator: NamesRuns | None = None
        self._engine = engine
        self._watch = watch
        self._may_pass = may_pass
        self._count = count
        self._send = send
        self._take = take

    def settle(self, translator: NamesRuns | None, *, opens: bool) -> None:
        """The versions are settled; `opens` says whether there is to be a short way at all."""
        self._translator = translator
        if not opens:
            self._end_of_run = None
        elif translator is not None:
            self._end_of_run = end_of_nameless_chunks
        else:
            self._end_of_run = end_of_named_chunks if self._engine.version is Version.V2 else end_of_chunks

    def recognize(self, data: bytes, start: int) -> int:
        """Where the lines that may come as a Run end; see `framing.Recognize`."""
        if self._end_of_run is None:
            return start
        end = self._end_of_run(data, start)
        return end if end > start and self._may_pass(b"") else start

    def run(self, run: Run, at: float) -> None:
        """Pass a block on; where something is owed first, the first of its lines goes alone."""
        data = run.data
        for _ in range(2):
            if self._block(data, at):
                return
            cut = data.index(b"\n")
            self._take(data[:cut], self._count(1), at)
            data = data[cut + 1 :]
            if not data:
                return
        for line in Run(data).lines():
            self._take(line, self._count(1), at)

    def _block(self, data: bytes, at: float) -> bool:
        if not self._may_pass(data):
            return False
        if self._translator is None:
            if not self._heard(data, at):
                return False
            self._count(data.count(b"\n"))
            self._send(data[:-1])
            return True
        chunks = TextRun.read(data)
        if chunks is None:
            return False
        session_id = chunks.session[1:-1].decode()
        if self._watch.steady(session_id) is None:
            return False
        message_id = self._translator.text_run(session_id, chunks.tag)
        if message_id is None:
            return False
        self._engine.session(session_id).last_heard = at
        self._count(chunks.count)
        self._send(chunks.named(codec.encode(message_id))[:-1])
        return True

    def _heard(self, data: bytes, at: float) -> bool:
        """Whether these chunks can be no breach; then the watch hears of them as a whole."""
        found = whose(data)
        session = self._watch.steady(found[0]) if found is not None else None
        if found is None or session is None:
            return False
        session.heard_at = at
        if found[1] is not None:
            session.messages.add(found[1])
        return True
