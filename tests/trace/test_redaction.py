"""Redaction: no secret from a known place is written down, and nothing else is touched."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from acp_proxy.trace import redaction
from acp_proxy.trace.redaction import Redactor

SECRET = "s3cr3t-canary-value"
ONE = "‹redacted:1›"
TWO = "‹redacted:2›"

Build = Callable[[Any], Any]

FORMS: dict[str, Build] = {
    "list": lambda secret: [{"name": "OTHER", "value": "x"}, {"name": "K", "value": secret}],
    "map": lambda secret: {"OTHER": "x", "K": secret},
}


def server(method: str, key: str, form: str) -> Build:
    """A call that hands over one server with a secret."""
    return lambda secret: {
        "jsonrpc": "2.0",
        "id": 1,
        "method": method,
        "params": {"cwd": "/w", "mcpServers": [{"name": "m", key: FORMS[form](secret)}]},
    }


# Every place the protocol has for a secret, as a frame around it.
PLACES: dict[str, Build] = {
    **{
        f"{method} {key} {form}": server(method, key, form)
        for method in ("session/new", "session/load", "session/resume", "session/fork", "_x.ext/session/new")
        for key in ("env", "headers")
        for form in ("list", "map")
    },
    "login as a map": lambda secret: {
        "id": 0,
        "result": {"authMethods": [{"id": "a"}, {"id": "t", "type": "terminal", "env": {"K": secret}}]},
    },
    "login as a list": lambda secret: {
        "id": 0,
        "result": {"authMethods": [{"id": "t", "env": [{"name": "K", "value": secret}]}]},
    },
    "login in an error": lambda secret: {
        "id": 0,
        "error": {
            "code": -32000,
            "message": "",
            "data": {"authMethods": [{"id": "t", "env": {"K": secret}}]},
        },
    },
    "terminal": lambda secret: {
        "id": 2,
        "method": "terminal/create",
        "params": {"command": "ls", "env": [{"name": "A", "value": ""}, {"name": "B", "value": secret}]},
    },
    "provider as a map": lambda secret: {
        "id": 3,
        "method": "providers/set",
        "params": {"id": "p", "headers": {"Authorization": secret}},
    },
    "provider as a list": lambda secret: {
        "id": 3,
        "method": "providers/set",
        "params": {"id": "p", "headers": [{"name": "Authorization", "value": secret}]},
    },
    "servers as a map": lambda secret: {"params": {"mcpServers": {"m": {"env": {"K": secret}}}}},
    "variables as text": lambda secret: {"params": {"mcpServers": [{"env": [f"K={secret}"]}]}},
    "a list of values": lambda secret: {"params": {"headers": {"K": [secret, secret]}}},
    "a batch": lambda secret: [
        {"id": 1, "result": {}},
        {"params": {"env": [{"name": "A", "value": secret}]}},
    ],
    "a call in a call": lambda secret: {
        "method": "_proxy/successor",
        "params": {"method": "session/new", "params": {"mcpServers": [{"env": {"K": secret}}]}},
    },
}

canaries = st.text(min_size=8, max_size=40).filter(lambda text: text not in ONE)
plain_json = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=12)
    | st.sampled_from(["env", "headers", '"env"']),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.text(max_size=6) | st.sampled_from(["env", "headers", "params", "result", "name", "value"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


def strings(body: Any) -> list[str]:
    """Every string in JSON data, names included."""
    if isinstance(body, str):
        return [body]
    if isinstance(body, dict):
        return [*body, *(text for inner in body.values() for text in strings(inner))]
    return [text for inner in body for text in strings(inner)] if isinstance(body, list) else []


def holds(body: Any, secret: str) -> bool:
    return any(secret in text for text in strings(body))


@pytest.mark.parametrize("place", PLACES)
def test_every_place_is_redacted(place: str) -> None:
    shown = Redactor().frame(json.dumps(PLACES[place](SECRET)).encode())
    assert SECRET.encode() not in shown
    assert b"redacted:" in shown
    redacted = json.loads(shown)
    assert type(redacted) is type(PLACES[place](SECRET))


def test_only_the_values_are_replaced_and_equal_ones_alike() -> None:
    redactor = Redactor()
    env = [{"name": "A", "value": "first-secret"}, {"name": "B", "value": "short"}]
    env += [{"name": "C", "value": "first-secret"}, {"name": "D", "value": ""}]
    frame = {"method": "session/new", "params": {"cwd": "/w", "mcpServers": [{"command": "x", "env": env}]}}
    assert json.loads(redactor.frame(json.dumps(frame).encode())) == {
        "method": "session/new",
        "params": {
            "cwd": "/w",
            "mcpServers": [
                {
                    "command": "x",
                    "env": [
                        {"name": "A", "value": ONE},
                        {"name": "B", "value": TWO},
                        {"name": "C", "value": ONE},
                        {"name": "D", "value": ""},
                    ],
                }
            ],
        },
    }
    again = {"params": {"headers": {"X": "short", "Y": "third", "Z": None, "N": 5, "T": True}}}
    assert json.loads(redactor.frame(json.dumps(again).encode()))["params"]["headers"] == {
        "X": TWO,
        "Y": "‹redacted:3›",
        "Z": None,
        "N": "‹redacted:4›",
        "T": True,
    }


@given(secret=canaries, place=st.sampled_from(sorted(PLACES)), ascii_only=st.booleans())
def test_a_canary_never_appears(secret: str, place: str, ascii_only: bool) -> None:
    redactor = Redactor()
    assume(not holds(PLACES[place](""), secret))
    raw = json.dumps(PLACES[place](secret), ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    shown = redactor.frame(raw)
    assert secret.encode("utf-8", "surrogatepass") not in shown
    assert not holds(json.loads(shown), secret)


@given(secret=canaries, before=st.text(max_size=5), after=st.text(max_size=5), ascii_only=st.booleans())
def test_a_canary_seen_once_is_found_again_however_it_is_quoted(
    secret: str, before: str, after: str, ascii_only: bool
) -> None:
    redactor = Redactor()
    redactor.frame(json.dumps(PLACES["terminal"](secret)).encode())
    body: Any = {"text": before + secret + after}
    assume(secret not in before + "x" + after)
    for _ in range(3):
        raw = json.dumps(body, ensure_ascii=ascii_only)
        shown = redactor.frame(raw.encode("utf-8", "surrogatepass"))
        inner = json.loads(shown)
        assert not holds(inner, secret)
        # In quoted JSON a secret of digits may take part of an escape before it along.
        with contextlib.suppress(ValueError):
            while inner["text"].startswith('{"text": '):
                inner = json.loads(inner["text"])
                assert not holds(inner, secret)
        body = {"text": raw}


def test_a_canary_is_found_again_in_every_spelling() -> None:
    redactor = Redactor()
    secret = 'pa/ss "wörd"\\\n😀<x>'
    redactor.frame(json.dumps(PLACES["terminal"](secret)).encode())
    spellings = [
        json.dumps(secret),
        json.dumps(secret, ensure_ascii=False),
        json.dumps(secret).replace("/", "\\/"),
        json.dumps(secret).replace("<", "\\u003c").replace(">", "\\u003E"),
        json.dumps(secret).replace("\\ud83d", "\\uD83D"),
        '"' + "".join(f"\\u{ord(char):04x}" for char in secret if ord(char) < 0x10000 and char != "😀") + '"',
    ]
    assert "\\u0070\\u0061" in spellings[-1]
    for spelling in spellings[:-1]:
        assert json.loads(spelling) == secret
        frame = f'{{"a": {spelling}}}'
        assert json.loads(redactor.frame(frame.encode())) == {"a": ONE}
    ascii_secret = "abc-DEF-123"
    redactor.frame(json.dumps(PLACES["terminal"](ascii_secret)).encode())
    spelled = "".join(f"\\u{ord(char):04X}" for char in ascii_secret)
    assert redactor.frame(f'{{"a": "{spelled}"}}'.encode()) == f'{{"a": "{TWO}"}}'.encode()
    assert redactor.text(f"plain {secret} and {ascii_secret}") == f"plain {ONE} and {TWO}"


@given(body=plain_json, indent=st.none() | st.integers(0, 2), ascii_only=st.booleans())
def test_frames_without_secrets_are_the_same_bytes(body: Any, indent: int | None, ascii_only: bool) -> None:
    raw = json.dumps({"id": 1, "update": body}, indent=indent, ensure_ascii=ascii_only).encode(
        "utf-8", "surrogatepass"
    )
    assume(b'"params"' not in raw)
    redactor = Redactor()
    redactor.arguments(["--token", "a secret that is nowhere else"])
    assert redactor.frame(raw) is raw


@pytest.mark.parametrize(
    "raw",
    [
        b'{"params":{"mcpServers":[{"env":[],"headers":[]}]}}',
        b'{ "params" : {"mcpServers":[{"env":[{"name":"A","value":""}]}]}}',
        b'{"params":{"env":null,"headers":{}}}',
        b'{"result":{"authMethods":[{"vars":[{"name":"env"}]}], "env":{"A":"not a place"}}}',
        b'{"params":{"mcpServers":"env","authMethods":5,"x":"\\"env\\""}}',
        b'{"params":{"env":[{"name":"A","value":"\xe2\x80\xb9redacted:3\xe2\x80\xba"}]}}',
        b'{"t":"\\u001b[0m\\u0041", "u":"\\u0065nv"}',
        b"no json \\u0041",
        b"\xff\xfe",
        b"",
        b"5",
    ],
)
def test_nothing_to_hide_means_nothing_is_touched(raw: bytes) -> None:
    assert Redactor().frame(raw) is raw


@pytest.mark.parametrize(
    "raw",
    [
        '{"params":{"env":[{"name":"A","value":"SECRET"}],"env":[]}}',
        '{"params":{"env":[{"name":"A","value":"SECRET"}]},"params":{}}',
        '{"params":{"\\u0065nv":[{"name":"A","value":"SECRET"}]}}',
        '{"params":{"env":[{"name":"A","value":"SECRET"}],"\\u0065nv":[]}}',
        '{"params":{"\\u0065nv":[{"name":"A","value":"SECRET"}]},"params":{}}',
        '{"params":{"h\\u0065aders":{"A":"SECRET"}}}',
        '{"params":{"env":[{"name":"A","value":"SECRET"}], "x":1e999}}',
        '{"params":{"env":[{"name":"A","value":"SECRET"}]',
        '{"params":{"env":[{"name":"A","value":"SECRET',
        '{"params":{"env":[{"name":"A","value":"x\\"SECRET\\',
        '{"params":{"env":{"A":"SECRET"}} trailing',
        '{"params":{"\\u0065nv":{"A":"SECRET"}} trailing',
        '{"params":{"headers":{"A":["x", "SECRET"]}} trailing',
        '{"params":{"env":' + '{"a":' * 150 + '"SECRET"' + "}" * 150 + "}}",
        '{"params":{"env":' + '{"a":' * 900 + '"SECRET"' + "}" * 900 + "}}",
        '{"params":{"env":' + "[" * 3000 + '"SECRET"' + "]" * 3000 + "}}",
    ],
)
def test_odd_frames_hide_no_less(raw: str) -> None:
    assert SECRET not in Redactor().frame(raw.replace("SECRET", SECRET).encode()).decode()


def test_an_undecodable_frame_keeps_what_stands_before_the_name() -> None:
    shown = Redactor().frame(b'{"cwd":"/w","env":{"A":"x","B":["y","z"]},"n":"k" trailing').decode()
    assert (
        shown
        == '{"cwd":"/w","env":{"A":"‹redacted›","B":["‹redacted›","‹redacted›"]},"n":"‹redacted›" trailing'
    )


def test_short_secrets_are_hidden_at_their_place_only() -> None:
    redactor = Redactor()
    assert b"1234567" not in redactor.frame(json.dumps(PLACES["terminal"]("1234567")).encode())
    assert redactor.frame(b'{"a":"1234567"}') == b'{"a":"1234567"}'


def test_a_secret_in_a_number_leaves_json() -> None:
    redactor = Redactor()
    redactor.frame(json.dumps(PLACES["terminal"]("12345678")).encode())
    shown = redactor.frame(b'{"id":12345678, "x":[912345678.5], "y":"n 12345678", "12345678":1}')
    assert json.loads(shown) == {"id": ONE, "x": [f"9{ONE}.5"], "y": f"n {ONE}", ONE: 1}


def test_a_number_too_long_to_write_out_is_no_error() -> None:
    huge = "1" * 4200  # a decoder takes it; its square it could not even print
    shown = Redactor().frame(b'{"params":{"env":{"K":%b}}}' % huge.encode())
    assert json.loads(shown) == {"params": {"env": {"K": ONE}}}
    assert Redactor().settings({"plugins.x.token": int(huge) ** 2}) == {"plugins.x.token": ONE}


def test_text_that_looks_like_json_and_is_none_is_searched_too() -> None:
    redactor = Redactor()
    assert redactor.text(SECRET) == SECRET
    redactor.arguments(["--token", SECRET])
    assert redactor.frame(f"[{SECRET}] broken".encode()) == f"[{ONE}] broken".encode()


def test_a_secret_at_the_end_of_quoted_json_leaves_json() -> None:
    redactor = Redactor()
    secret = '000000"\\'
    redactor.frame(json.dumps(PLACES["terminal"](secret)).encode())
    shown = redactor.frame(json.dumps({"text": json.dumps({"text": secret})}).encode())
    assert json.loads(json.loads(shown)["text"]) == {"text": ONE}


def test_the_credential_after_its_scheme_is_a_secret_of_its_own() -> None:
    redactor = Redactor()
    redactor.frame(json.dumps(PLACES["provider as a map"](f"Bearer {SECRET}")).encode())
    assert redactor.text(f"tried {SECRET}, then Bearer {SECRET}") == f"tried {ONE}, then {ONE}"


def test_of_two_secrets_the_longer_is_found_first() -> None:
    redactor = Redactor()
    redactor.arguments(["--token", SECRET, "--password", f"{SECRET}-and-more"])
    assert redactor.text(f"{SECRET} {SECRET}-and-more") == f"{ONE} {TWO}"


def test_values_are_redacted_without_losing_their_shape() -> None:
    redactor = Redactor()
    assert redactor.value({"a": [SECRET]}) == {"a": [SECRET]}
    redactor.arguments(["--token", SECRET])
    assert redactor.value({"a": [f"x{SECRET}", 1, None, True, 1.5], SECRET: ("t",)}) == {
        "a": [f"x{ONE}", 1, None, True, 1.5],
        ONE: ["t"],
    }


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        (["agent", "--model", "x", "-v"], ["agent", "--model", "x", "-v"]),
        (["agent", "--api-key", SECRET, "x"], ["agent", "--api-key", ONE, "x"]),
        (["agent", "--apikey", "short", "x"], ["agent", "--apikey", ONE, "x"]),
        (["agent", f"--api_key={SECRET}"], ["agent", f"--api_key={ONE}"]),
        (["agent", f"--set=plugins.x.token={SECRET}"], ["agent", f"--set=plugins.x.token={ONE}"]),
        (["agent", "-password", SECRET], ["agent", "-password", ONE]),
        (["agent", "--db-Password", SECRET], ["agent", "--db-Password", ONE]),
        (["agent", "--client-secret-file", "f"], ["agent", "--client-secret-file", ONE]),
        (["agent", "--use-token", "--model", "x"], ["agent", "--use-token", "--model", "x"]),
        (["agent", "--token"], ["agent", "--token"]),
        (["env", f"OPENAI_API_KEY={SECRET}", "agent"], ["env", f"OPENAI_API_KEY={ONE}", "agent"]),
        (["docker", "-e", f"GH_TOKEN={SECRET}"], ["docker", "-e", f"GH_TOKEN={ONE}"]),
        (
            ["agent", "--header", f"Authorization: Bearer {SECRET}"],
            ["agent", "--header", f"Authorization: {ONE}"],
        ),
        (["agent", f'{{"token": "{SECRET}"}}'], ["agent", f'{{"token": "{ONE}']),
        (["agent", f"https://u:{SECRET}@host/x"], ["agent", f"https://u:{ONE}@host/x"]),
        (["agent", f"https://host/?access-key={SECRET}&a=b"], ["agent", f"https://host/?access-key={ONE}"]),
        (["secret-agent", "tokens"], ["secret-agent", "tokens"]),
        (["agent", "PASSWORD="], ["agent", "PASSWORD="]),
    ],
)
def test_command_lines(command: list[str], shown: list[str]) -> None:
    redactor = Redactor()
    assert redactor.arguments(command) == shown
    if any(SECRET in argument for argument in command):
        assert SECRET not in redactor.text(f"the agent says {SECRET}")


def test_settings_named_like_secrets_are_redacted() -> None:
    settings = {"bridge.mode": "off", "plugins.x.api_key": [SECRET, "s"], "plugins.x.path": SECRET}
    assert Redactor().settings(settings) == {
        "bridge.mode": "off",
        "plugins.x.api_key": [ONE, TWO],
        "plugins.x.path": ONE,
    }


def test_memory_for_secrets_is_bounded() -> None:
    redactor = Redactor()
    count = redaction.REMEMBER_COUNT
    env = [{"name": "A", "value": f"Bearer secret-number-{number:06}"} for number in range(count + 10)]
    redactor.frame(json.dumps({"params": {"env": env}}).encode())
    assert redactor.text("secret-number-000009") == "secret-number-000009"
    assert redactor.text("secret-number-000010") == "‹redacted:11›"
    assert len(redactor._known) == 2 * count


def test_a_huge_secret_is_found_by_its_beginning() -> None:
    redactor = Redactor()
    secret = "-/".join(f"piece{number}" for number in range(200_000))
    redactor.frame(json.dumps(PLACES["terminal"](secret)).encode())
    assert redactor.frame(json.dumps({"a": secret, "b": 1}).encode()) == f'{{"a": "{ONE}", "b": 1}}'.encode()


@given(raw=st.binary() | st.text(alphabet='{}[]",:\\u0065nv env"headers"params').map(str.encode))
def test_no_input_is_an_error(raw: bytes) -> None:
    redactor = Redactor()
    redactor.arguments(["--token", '"env":{\\u0065'])
    assert isinstance(redactor.frame(b'"env"' + raw), bytes)
    assert isinstance(redactor.frame(raw), bytes)
