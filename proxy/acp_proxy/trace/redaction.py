"""Takes secrets out of what is written down, by where they stand and then wherever they turn up again.

The protocol says where secrets are: values of environment variables and headers that a client gives an
agent for MCP servers and providers, variables of a terminal, variables of a login. Key names are no
guide (an `env` may call a password anything), so everything at those places goes, whatever its name.
A value of eight characters or more is remembered, and later text is searched for it: agents echo what
they were given into errors, tool output and titles. Shorter ones would blank half a recording.

The placeholder is `‹redacted:N›`; equal values have equal N, counted from 1.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from acp_proxy.jsonrpc.codec import DecodeError, EncodeError, decode, encode

REMEMBER_LENGTH: Final = 8
# A peer that makes up values without end must not slow down every frame: the oldest is forgotten, and
# of a huge one the beginning is looked for.
REMEMBER_COUNT: Final = 1000
SEARCH_LENGTH: Final = 4096
_DEPTH: Final = 100
_KEYS: Final = ("env", "headers")
_LISTS: Final = ("mcpServers", "authMethods")
_PLACEHOLDER: Final = re.compile("‹redacted:[0-9]+›")
_WITHHELD: Final = "‹redacted›"
_SCHEME: Final = re.compile(r"(?i)(?:basic|bearer|token|apikey)[ \t]+(\S.*)")

_KEY_TOKEN: Final = re.compile(rb'(?<!\\)"(?:env|headers)"')
# No usual encoder escapes letters, digits, `-`, `.` and `_`, so names and values are looked for as they
# are, and once more in the text with this undone. Backslashes multiply where JSON is quoted in JSON.
_ESCAPED_WORD_END: Final = re.compile(rb"\\u00(2[dDeE]|3[0-9]|[46][1-9a-fA-F]|[57][0-9aA]|5[fF])")
_ESCAPED_WORD: Final = re.compile(rb"\\{0,7}" + _ESCAPED_WORD_END.pattern)
_STRING_VALUE: Final = re.compile(rb'([:\[,]\s*)"(?:[^"\\]|\\.)*+(?:"(?!\s*:)|\\?\Z)', re.DOTALL)
_WORD_RUN: Final = re.compile("[A-Za-z0-9_.-]+")
_PIECE: Final = re.compile(rf"{_WORD_RUN.pattern}|\\+|.", re.DOTALL)
_SHORT_ESCAPES: Final = {"\n": rb"n", "\r": rb"r", "\t": rb"t", "\b": rb"b", "\f": rb"f"}

_SECRET_WORD: Final = (
    r"(?:(?:api|access|private)[-_]?key|token|secret|passw|passphrase|credential|authorization|bearer)"
)
_SECRET_NAME: Final = re.compile(rf"(?i){_SECRET_WORD}")
_SECRET_FLAG: Final = re.compile(rf"(?i)--?[\w.-]*{_SECRET_WORD}[\w.-]*")
_ASSIGNMENT: Final = re.compile(rf"(?is)({_SECRET_WORD}[\w.-]*[\"']?\s*[=:]\s*[\"']?)(\S.*)")
_VALUE_END: Final = re.compile(r"[\"'&;,}\s]")
_USER_INFO: Final = re.compile(r"(?i)(://[^/?#@\s:]*:)([^/?#@\s]+)(?=@)")


class Redactor:
    """Knows the secrets seen so far in one run; give it the frames in their order.

    Nothing here raises on account of what a peer sent.
    """

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._count = 0
        self._known: list[_Known] = []

    def frame(self, raw: bytes) -> bytes:
        """One frame, JSON or not: the same object when there is nothing to hide in it.

        A frame with a secret at its place is encoded anew (whitespace, spelling of escapes and
        numbers); so is one that has a name twice, because the first of the two is invisible to us.
        What names a place but cannot be decoded loses every string after that name.
        """
        plain = _unescaped(raw)
        if b'"env"' in plain or b'"headers"' in plain:
            raw = self._by_place(raw, plain)
        return self._by_value(raw) if self._known else raw

    def text(self, text: str) -> str:
        """Any other text, such as a line of the agent's stderr: known secrets are replaced."""
        if not self._known:
            return text
        return self._searched(text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")

    def value(self, value: Any) -> Any:
        """Plain JSON data: known secrets are replaced in its keys, strings and numbers."""
        return _mapped(value, self.text) if self._known else value

    def arguments(self, command: Sequence[str]) -> list[str]:
        """A command line: what follows `--token` and the like, or stands after `NAME=` or `NAME:`.

        A name is one that contains a word such as api-key, token, secret or password; passwords in
        URLs go too. These values are remembered like the ones in frames.
        """
        shown: list[str] = []
        flagged = False
        for argument in command:
            if flagged and not argument.startswith("--"):
                shown.append(self._hidden(argument))
                flagged = False
                continue
            flagged = _SECRET_FLAG.fullmatch(argument) is not None
            argument = _USER_INFO.sub(lambda found: found[1] + self._hidden(found[2]), argument)
            shown.append(_ASSIGNMENT.sub(self._assigned, argument))
        return shown

    def settings(self, settings: Mapping[str, object]) -> dict[str, object]:
        """Settings by dotted key: the values of keys named like secrets are replaced."""
        return {
            key: self._all(value) if _SECRET_NAME.search(key) else self.value(value)
            for key, value in settings.items()
        }

    def _hidden(self, secret: str) -> str:
        """The placeholder of a secret, which is remembered."""
        if not secret or _PLACEHOLDER.fullmatch(secret):
            return secret  # a recording played again: its numbers are still good
        number = self._numbers.get(secret)
        if number is None:
            self._count = number = self._count + 1
            self._numbers[secret] = number
            self._forget()
        placeholder = f"‹redacted:{number}›"
        credential = _SCHEME.fullmatch(secret)
        for part in (secret, credential[1]) if credential else (secret,):
            self._remember(part, placeholder)
        return placeholder

    def _assigned(self, found: re.Match[str]) -> str:
        """The rest of an argument hidden; of a longer text the first value is remembered too."""
        placeholder = self._hidden(found[2])
        self._remember(_VALUE_END.split(found[2], maxsplit=1)[0], placeholder)
        return found[1] + placeholder

    def _remember(self, secret: str, placeholder: str) -> None:
        if len(secret) < REMEMBER_LENGTH or secret in placeholder:
            return
        if all(known.secret != secret for known in self._known):
            self._known.append(_Known(secret, placeholder))
            # Longest first: a secret may be part of another.
            self._known.sort(key=lambda known: len(known.secret), reverse=True)

    def _forget(self) -> None:
        if len(self._numbers) > REMEMBER_COUNT:
            number = self._numbers.pop(next(iter(self._numbers)))
            oldest = f"‹redacted:{number}›"
            self._known = [known for known in self._known if known.placeholder != oldest]

    def _by_place(self, raw: bytes, plain: bytes) -> bytes:
        """Hide what stands at the known places; `plain` is the same frame by `_unescaped`."""
        tokens = len(_KEY_TOKEN.findall(plain))
        try:
            body = decode(raw)
            hidden = False
            for node in _nodes(body):
                if isinstance(node, str):
                    tokens -= node in _KEYS
                elif isinstance(node, dict):
                    tokens -= sum(key in node for key in _KEYS)
                    hidden |= self._in_object(node)
            # Of two equal keys the decoder keeps the last: then the text has more names than the data.
            return encode(body) if hidden or tokens else raw
        except (DecodeError, EncodeError):
            named = _KEY_TOKEN.search(plain)
            if named is None:
                return raw
            start = named.end()
            return plain[:start] + _STRING_VALUE.sub(b'\\1"%b"' % _WITHHELD.encode(), plain[start:])

    def _in_object(self, node: dict[str, Any]) -> bool:
        """Hide the secrets of the places that begin at this object; tells whether there were any.

        Objects are looked at whatever their method or depth: a call may be wrapped in another, and
        an extension's way to open a session carries the same secrets.
        """
        hidden = False
        for name in _LISTS:
            listed = node.get(name)
            entries = list(listed.values()) if isinstance(listed, dict) else listed
            for entry in entries if isinstance(entries, list) else ():
                hidden |= self._in_holder(entry)
        return self._in_holder(node.get("params")) or hidden

    def _in_holder(self, holder: Any) -> bool:
        """Hide the values of `env` and `headers`, lists of name and value or maps."""
        hidden = False
        for key in _KEYS:
            if isinstance(holder, dict) and key in holder:
                before = holder[key]
                holder[key] = self._pairs(before) if isinstance(before, list) else self._all(before)
                hidden |= holder[key] != before
        return hidden

    def _pairs(self, pairs: list[Any]) -> list[Any]:
        return [
            {name: inner if name == "name" else self._all(inner) for name, inner in pair.items()}
            if isinstance(pair, dict)
            else self._all(pair)
            for pair in pairs
        ]

    def _all(self, value: Any) -> Any:
        """Every string and number in the value hidden; names of members stay."""
        return _mapped(value, self._hidden, keys=False)

    def _by_value(self, raw: bytes) -> bytes:
        """Replace known secrets however they are spelled; JSON stays JSON."""
        shown = self._searched(raw)
        if shown is raw or not raw.lstrip().startswith((b"{", b"[")):
            return shown
        try:
            decode(shown)
        except DecodeError:
            try:
                # The secret was part of a number: the placeholder must be a string of its own.
                return encode(self.value(decode(raw)))
            except (DecodeError, EncodeError):
                pass  # it was no JSON before
        return shown

    def _searched(self, raw: bytes) -> bytes:
        shown = self._replaced(raw)
        plain = _unescaped(shown)
        if plain is not shown:
            replaced = self._replaced(plain)
            shown = shown if replaced is plain else replaced
        return shown

    def _replaced(self, raw: bytes) -> bytes:
        """Known secrets replaced; the same object when there is none."""
        for known in self._known:
            if known.anchor in raw:
                shown, count = known.pattern().subn(known.placeholder.encode(), raw)
                raw = shown if count else raw
        return raw


class _Known:
    """A secret to look for; its pattern is made only when the quick test has hit."""

    __slots__ = ("_pattern", "anchor", "placeholder", "secret")

    def __init__(self, secret: str, placeholder: str) -> None:
        self.secret = secret
        self.placeholder = placeholder
        self.anchor = max(_WORD_RUN.findall(secret[:SEARCH_LENGTH]), key=len, default="").encode()
        self._pattern: re.Pattern[bytes] | None = None

    def pattern(self) -> re.Pattern[bytes]:
        """What the secret may look like, as it is or in JSON, or in JSON quoted in JSON."""
        if self._pattern is None:
            pieces = [_spellings(piece[0]) for piece in _PIECE.finditer(self.secret[:SEARCH_LENGTH])]
            if len(self.secret) > SEARCH_LENGTH:
                pieces.append(rb'(?s:[^"\\]|\\.)*')  # the rest of the string, and rather more than less
            self._pattern = re.compile(b"".join(pieces))
        return self._pattern


def _spellings(piece: str) -> bytes:
    """A pattern for a run of what is never escaped, a run of backslashes, or one other character."""
    if piece[0] == "\\":
        return rb"\\{%d,%d}" % (len(piece), 16 * len(piece))
    literal = re.escape(piece.encode("utf-8", "surrogatepass"))
    if _WORD_RUN.fullmatch(piece):
        return literal
    units = piece.encode("utf-16-be", "surrogatepass")
    forms = [literal, b"".join(rb"\\{1,8}u(?i:%02x%02x)" % (high, low) for high, low in _doubles(units))]
    if piece in _SHORT_ESCAPES:
        forms.append(rb"\\{1,8}" + _SHORT_ESCAPES[piece])
    elif piece in "\"/'":
        forms[0] = rb"\\{0,8}" + literal
    return b"(?:%b)" % b"|".join(forms)


def _doubles(data: bytes) -> Iterator[tuple[int, int]]:
    return zip(data[::2], data[1::2], strict=True)


def _unescaped(raw: bytes) -> bytes:
    """The text with what needs no escape written as itself; the same object when it is."""
    # The second test is there for its speed: control characters of terminal output pass only the first.
    if b"\\u00" not in raw or _ESCAPED_WORD_END.search(raw) is None:
        return raw
    return _ESCAPED_WORD.sub(lambda found: bytes([int(found[1], 16)]), raw)


def _nodes(body: Any) -> Iterator[Any]:
    """Every value of JSON data, an object before what is in it; no recursion, peers nest as they like."""
    waiting = [body]
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, dict):
            waiting.extend(node.values())
        elif isinstance(node, list):
            waiting.extend(node)


def _mapped(value: Any, change: Callable[[str], str], *, keys: bool = True, depth: int = 0) -> Any:
    """JSON data with its strings changed, and numbers whose digits are; too deep, it is withheld."""
    if isinstance(value, str):
        return change(value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, (int, float)):
        text = _digits(value)
        changed = change(text)
        return value if changed == text else changed
    if depth > _DEPTH:
        return _WITHHELD
    if isinstance(value, dict):
        return {
            change(key) if keys else key: _mapped(inner, change, keys=keys, depth=depth + 1)
            for key, inner in value.items()
        }
    return [_mapped(inner, change, keys=keys, depth=depth + 1) for inner in value]


def _digits(number: float) -> str:
    try:
        return str(number)
    except ValueError:  # Python refuses to write out an integer of more than 4300 digits
        return hex(int(number))
