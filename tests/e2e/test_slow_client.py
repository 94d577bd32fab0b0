"""A client that pauses gets everything in the end, whoever has ended meanwhile; one that never reads is told of."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

FRAMES = 18
PAUSE = 2.5
DEADLINE = 20.0
# Writes more than the pipes hold, then ends, or lives until its stdin does.
AGENT = """
import json, sys
out = sys.stdout.buffer
for line in sys.stdin.buffer:
    request = json.loads(line)
    result = {"protocolVersion": 1} if request["method"] == "initialize" else {"stopReason": "end_turn"}
    if request["method"] == "session/prompt":
        for number in range(int(sys.argv[1])):
            out.write(b'{"jsonrpc":"2.0","method":"_n","params":{"d":"' + b"x" * 65536 + b'"}}\\n')
    out.write(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}).encode() + b"\\n")
    out.flush()
    if "exits" in sys.argv and request["method"] == "session/prompt":
        sys.exit(3)
"""


@contextmanager
def prompted(*agent: str, options: Sequence[str] = ()) -> Iterator[subprocess.Popen[bytes]]:
    """A proxy whose agent has been given the prompt that it answers with a lot; what it writes is not read yet."""
    command = [
        sys.executable,
        "-m",
        "acp_proxy",
        "wrap",
        *options,
        "--",
        sys.executable,
        "-c",
        AGENT,
        str(FRAMES),
        *agent,
    ]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        for number, (method, params) in enumerate(
            [("initialize", {"protocolVersion": 1}), ("session/prompt", {"sessionId": "s", "prompt": []})]
        ):
            body = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
            process.stdin.write(json.dumps(body).encode() + b"\n")
            process.stdin.flush()
            if method == "initialize":
                process.stdout.readline()
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize(("agent", "status"), [("exits", 3), ("stays", 0)])
def test_what_was_written_before_the_end_arrives_after_a_pause(agent: str, status: int) -> None:
    with prompted(agent) as process:
        assert process.stdout is not None
        if agent == "stays":
            time.sleep(0.5)  # the agent's answer is on its way when the client has no more to ask
            assert process.stdin is not None
            process.stdin.close()
            process.stdin = None
        time.sleep(PAUSE)
        got = process.stdout.read()
        assert process.wait(DEADLINE) == status
    frames = got.split(b"\n")
    assert frames.pop() == b""
    assert len(frames) == FRAMES + 1
    assert json.loads(frames[-1])["result"] == {"stopReason": "end_turn"}


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
def test_told_to_end_it_waits_for_no_slow_client_any_longer() -> None:
    with prompted("exits") as process:
        time.sleep(1.5)
        process.terminate()
        assert process.wait(3.2) == 3, "the agent's end came first"


@pytest.mark.slow
def test_a_client_that_never_reads_is_given_up_and_told_of() -> None:
    with prompted("exits") as process:
        assert process.wait(DEADLINE) == 3
        assert process.stderr is not None
        assert b"the client does not read" in process.stderr.read()
