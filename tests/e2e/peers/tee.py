"""Runs a command in its caller's place and keeps a copy of every line that passes.

Usage: `tee.py LOG COMMAND [ARG ...]`. LOG grows by `> ` and the line for what the caller wrote, by `< ` and the
line for what the command wrote, in the order in which they passed; a restarted command goes on in the same file.
Signals and the end of input are handed on, and the exit status is the command's.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from typing import IO


def pump(source: IO[bytes], sink: IO[bytes], log: IO[bytes], mark: bytes) -> None:
    """Hand on whole lines; each is in the log before anybody can answer it."""
    for line in source:
        log.write(mark + line)
        try:
            sink.write(line)
            sink.flush()
        except (OSError, ValueError):  # gone, or closed by the other direction
            break


def main() -> int:
    log_path, *command = sys.argv[1:]
    # Unbuffered and appending: one write a line, so that two threads and two processes can share the file.
    with open(log_path, "ab", buffering=0) as log:
        child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert child.stdin is not None
        assert child.stdout is not None
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda number, _: child.send_signal(number))
        caller_leaves = threading.Thread(target=forward, args=(child.stdin, log), daemon=True)
        caller_leaves.start()
        pump(child.stdout, sys.stdout.buffer, log, b"< ")
        status = child.wait()
    return status if status >= 0 else 128 - status


def forward(sink: IO[bytes], log: IO[bytes]) -> None:
    """Everything the caller writes, then the end of it."""
    pump(sys.stdin.buffer, sink, log, b"> ")
    with contextlib.suppress(OSError):
        sink.close()


if __name__ == "__main__":
    # A daemon thread may still hold stdin's lock; the ordinary way out would wait for it.
    status = main()
    sys.stdout.flush()
    os._exit(status)
