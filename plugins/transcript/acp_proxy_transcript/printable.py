"""Text without what a terminal would act upon, for files that people `cat`."""

from __future__ import annotations

import re
from typing import Final

# Whole sequences first, or their parameters would stay behind as litter: CSI, then the string kinds
# (OSC, DCS, SOS, PM, APC) up to their terminator. A string stops at the next introducer too, so
# that many unterminated ones take linear time.
_SEQUENCE: Final = re.compile(
    "(?:\x1b\\[|\x9b)[0-?]*[ -/]*[@-~]"
    "|(?:\x1b[]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x80-\x9f]*(?:\x07|\x1b\\\\|\x9c)"
)
# C0 and C1 but tab and line feed, bidirectional controls, lone surrogates.
_CONTROL: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
_BREAK: Final = re.compile("\r\n|[\r\u0085\u2028\u2029]")


def printable(text: str) -> str:
    """The text with its lines and tabs, and without escape sequences, controls and direction marks."""
    if text.isascii() and text.isprintable():
        return text
    return _CONTROL.sub("", _BREAK.sub("\n", _SEQUENCE.sub("", text)))
