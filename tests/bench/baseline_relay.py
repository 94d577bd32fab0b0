"""The measure of every ratio: the plainest relay that still reads what it carries.

    python baseline_relay.py [--decodes N] [wrap] -- AGENT [ARG ...]

One blocking thread a direction; 64 KiB reads, every line decoded, one flush a read. It knows no protocol,
keeps no state and judges nothing, so it stands for what Python itself costs here. `wrap` is accepted so it
can take the proxy's place; with `--decodes` above 1 it is slow on purpose, to see that floors can be missed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import IO

import ujson

CHUNK_BYTES = 65536

Decode = Callable[[bytes], object]


def pump(source: int, sink: IO[bytes], decode: Decode) -> None:
    """Carry lines from the descriptor to the stream until either end closes.

    The pieces of an unfinished line are kept in a list: joining at each read would make large messages
    quadratic, and a weak measure flatters.
    """
    pieces: list[bytes] = []
    try:
        while chunk := os.read(source, CHUNK_BYTES):
            if b"\n" not in chunk:
                pieces.append(chunk)
                continue
            pieces.append(chunk)
            lines = b"".join(pieces).split(b"\n")
            pieces = [lines.pop()]
            for line in lines:
                decode(line)
                sink.write(line + b"\n")
            sink.flush()
    except BrokenPipeError:
        return


def decoder(decodes: int) -> Decode:
    if decodes == 1:
        return ujson.loads

    def repeatedly(line: bytes) -> object:
        return [ujson.loads(line) for _ in range(decodes)]

    return repeatedly


def forth(sink: IO[bytes], decode: Decode) -> None:
    pump(0, sink, decode)
    try:
        sink.close()
    except BrokenPipeError:
        return


def main(argv: list[str]) -> int:
    options, command = argv[: argv.index("--")], argv[argv.index("--") + 1 :]
    decode = decoder(int(options[options.index("--decodes") + 1]) if "--decodes" in options else 1)
    agent = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=CHUNK_BYTES)
    assert agent.stdin is not None
    assert agent.stdout is not None
    threading.Thread(target=forth, args=(agent.stdin, decode), daemon=True).start()
    # Own buffer: the interpreter's 8 KiB one would cut each read into eight writes, a fifth slower.
    with open(1, "wb", buffering=2 * CHUNK_BYTES, closefd=False) as client:
        pump(agent.stdout.fileno(), client, decode)
    # A client that left must reach an agent blocked in a write.
    agent.stdout.close()
    return agent.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
