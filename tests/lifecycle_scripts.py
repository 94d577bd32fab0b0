"""Conversations in short words, and for each rule of the catalogue the ones that break it, by pairing.

A script is a list of steps: `C(body)` the client says, `A(body)` the agent says, `T(seconds)` time passes.
`PAIRINGS` names the two versions, client first: `22`, `11`, and `21` for a bridge.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from relay_driver import (
    OPTIONS,
    Driver,
    Json,
    Said,
    answer,
    both_v1,
    both_v2,
    bridged,
    call,
    cancel,
    dismissed,
    failure,
    message,
    note,
    prompt,
    selected,
    text_block,
    tool,
    tool_update,
    update,
    withdraw,
)

Step = tuple[str, Any]
Script = Sequence[Step]


def C(body: Any) -> Step:
    return ("client", body)


def A(body: Any) -> Step:
    return ("agent", body)


def T(seconds: float) -> Step:
    return ("time", seconds)


def RAW(raw: bytes) -> Step:
    return ("raw", raw)


# ---------------------------------------------------------------- words of v2


def state(value: str, session: str = "s1", **more: Any) -> Json:
    return update("state_update", session, state=value, **more)


def idle(stop: str | None = "end_turn", session: str = "s1", **more: Any) -> Json:
    return state("idle", session, **({"stopReason": stop} if stop else {}), **more)


def heard(request_id: Any, message_id: str | None = None, text: str = "go", session: str = "s1") -> Json:
    """The echo of a prompt."""
    named = message_id if message_id is not None else f"m{request_id}"
    return update("user_message", session, messageId=named, content=[text_block(text)])


def taken(request_id: Any, message_id: str | None = None) -> Json:
    return answer(request_id, {"messageId": message_id if message_id is not None else f"m{request_id}"})


def said(text: str = "out", message_id: str = "a7", session: str = "s1") -> Json:
    return message(text, session=session, messageId=message_id)


def job(tool_id: str, status: str | None = None, **more: Any) -> Json:
    fields = {} if status is None else {"status": status}
    return update("tool_call_update", toolCallId=tool_id, title="t", **fields, **more)


def question(request_id: Any = 90, tool_id: str = "k", session: str = "s1") -> Json:
    subject = {"type": "tool_call", "toolCall": {"toolCallId": tool_id}}
    params = {"sessionId": session, "title": "May I?", "subject": subject, "options": OPTIONS}
    return call(request_id, "session/request_permission", params)


def begun(request_id: Any = 7, **more: Any) -> list[Step]:
    """A prompt under way."""
    return [
        C(prompt(request_id)),
        A(state("running", **more)),
        A(heard(request_id)),
        A(taken(request_id)),
    ]


def turn(request_id: Any = 7, stop: str = "end_turn", **more: Any) -> list[Step]:
    """A sound turn."""
    return [*begun(request_id, **more), A(said("out", f"a{request_id}")), A(idle(stop, **more))]


def resume(request_id: Any = 3, session: str = "s5", *, replay: bool = False) -> Step:
    params: Json = {"sessionId": session, "cwd": "/p"}
    if replay:
        params["replayFrom"] = {"type": "start"}
    return C(call(request_id, "session/resume", params))


def close(request_id: Any = 3, session: str = "s1") -> Step:
    return C(call(request_id, "session/close", {"sessionId": session}))


def replayed(session: str = "s5") -> list[Step]:
    return [A(heard("old", "u0", "old", session)), A(said("old", "a0", session))]


def terminal(terminal_id: str, **more: Any) -> Json:
    return update("terminal_update", terminalId=terminal_id, **more)


def listed(terminal_id: str = "T1") -> Json:
    return {"type": "terminal", "terminalId": terminal_id}


def child(session: str = "c9", **more: Any) -> Json:
    return update("subagent_update", sessionId=session, title="child", **more)


def ends_v1(request_id: Any = 7, stop: str | None = "end_turn") -> Step:
    return A(answer(request_id, {"stopReason": stop} if stop else {}))


# What a real agent does, and must never be found fault with.
SOUND_V2: Script = [
    *turn(7),
    C(prompt(8)),
    A(state("running")),
    A(heard(8)),
    A(taken(8)),
    A(job("t1", "in_progress")),
    A(state("requires_action")),
    A(question(90, "t1")),
    C(selected(90)),
    A(state("running")),
    A(job("t1", "completed")),
    A(job("t2", "in_progress")),
    A(idle()),
    A(job("t2", "completed")),
    A(said("by itself", "b1")),
    C(prompt(9)),
    A(state("running")),
    A(heard(9)),
    A(taken(9)),
    C(cancel()),
    A(said("tail", "a9")),
    A(idle("cancelled")),
    A(idle("cancelled")),
    resume(10, "s1", replay=True),
    A(heard(7)),
    A(said("out", "a7")),
    A(idle(None)),
    A(answer(10, {})),
    *turn(11),
    close(12),
    A(answer(12, {})),
]
SOUND_V1: Script = [
    C(prompt(7)),
    A(tool("t1", "pending")),
    A(
        call(
            90,
            "session/request_permission",
            {"sessionId": "s1", "toolCall": {"toolCallId": "t1"}, "options": OPTIONS},
        )
    ),
    C(selected(90)),
    A(tool_update("t1", "completed")),
    A(message("out")),
    ends_v1(),
    A(message("tail")),
    C(prompt(8)),
    A(
        call(
            91,
            "session/request_permission",
            {"sessionId": "s1", "toolCall": {"toolCallId": "t2"}, "options": OPTIONS},
        )
    ),
    C(cancel()),
    C(dismissed(91)),
    A(answer(8, {"stopReason": "cancelled"})),
    A(message("tail")),
    C(prompt(9)),
    A(message("again")),
    ends_v1(9),
]


def ask_v1(request_id: Any = 90, tool_id: str = "t1") -> Json:
    params = {"sessionId": "s1", "toolCall": {"toolCallId": tool_id}, "options": OPTIONS}
    return call(request_id, "session/request_permission", params)


WAITING: list[Step] = [*begun(), A(job("t1", "pending")), A(question(90, "t1")), A(state("requires_action"))]
CANCELLED: list[Step] = [*begun(), A(said()), C(cancel()), A(idle("cancelled"))]
BATCH = [call(5, "session/list", {})]

# rule -> pairing -> what breaks it
BREACHES: dict[str, dict[str, Script]] = {
    "V01": {
        "22": [*turn(7), C(prompt(8)), A(heard(8)), A(taken(8)), A(said("x", "a8"))],
        "21": [C(prompt(7)), A(state("running")), A(idle()), ends_v1(2), C(prompt(8)), A(message("x"))],
    },
    "V02": {
        "22": [
            *begun(),
            A(said()),
            C(prompt(8)),
            A(answer(8, {"messageId": "m8", "stopReason": "end_turn"})),
        ],
        "21": [
            C(prompt(7)),
            A(state("running")),
            A(message("x")),
            A(answer(2, {"stopReason": "end_turn"})),
            T(1),
        ],
    },
    "V03": {"22": [C(prompt(7)), A(heard(7)), A(said())]},
    "V04": {
        "22": [*begun(), A(said()), A(idle(None))],
        "21": [C(prompt(7)), A(state("running")), A(idle(None))],
    },
    "V05": {
        "22": [*begun(), A(state("requires_action")), T(1.5)],
        "21": [C(prompt(7)), A(state("requires_action")), T(1.5)],
    },
    "V06": {
        "22": [*begun(), A(job("t1", "pending")), A(question(90, "t1")), T(1.5)],
        "21": [C(prompt(7)), A(state("running")), A(tool("t1", "pending")), A(ask_v1()), T(1.5)],
    },
    "V07": {
        "22": [*WAITING, C(selected(90)), A(job("t1", "in_progress"))],
        "21": [
            C(prompt(7)),
            A(state("running")),
            A(tool("t1", "pending")),
            A(ask_v1()),
            A(state("requires_action")),
            C(selected(1)),
            A(tool_update("t1", "in_progress")),
        ],
    },
    "V08": {"22": [*WAITING, C(cancel()), A(idle("cancelled")), C(selected(90)), A(state("running"))]},
    "V09": {"22": [resume(), A(answer(3, {}))]},
    "V10": {"22": [resume(replay=True), A(idle(None, "s5")), *replayed(), A(answer(3, {}))]},
    "V11": {
        "22": [resume(), *replayed(), A(idle(None, "s5")), A(answer(3, {}))],
        "11": [resume(), A(message("old", session="s5")), A(answer(3, {}))],
    },
    "V12": {
        "22": [*begun(), A(said()), C(cancel()), A(idle("end_turn"))],
        "11": [C(prompt(7)), A(message()), C(cancel()), ends_v1()],
        "21": [C(prompt(7)), A(message()), C(cancel()), A(answer(2, {"stopReason": "end_turn"}))],
    },
    "V13": {
        "22": [
            *begun(),
            A(job("t1", "in_progress")),
            C(cancel()),
            A(idle("cancelled")),
            A(job("t1", "completed")),
        ]
    },
    "V14": {"22": [*turn(7), C(cancel()), A(idle("cancelled"))]},
    "V15": {"22": [*turn(7), A(idle("max_tokens"))]},
    "V16": {"22": [*begun(background=[]), A(said()), A(idle())]},
    "V17": {"22": [*begun(background=[]), A(said()), A(idle(background=[listed()]))]},
    "V18": {
        "22": [
            *begun(background=[]),
            A(terminal("T1")),
            A(idle(background=[listed()])),
            A(idle(background=[])),
        ]
    },
    "V19": {"22": [C(prompt(7)), A(state("running")), A(answer(7, {}))]},
    "V20": {"22": [C(prompt(7)), A(state("running")), A(taken(7)), A(said()), A(idle())]},
    "V21": {"22": [C(prompt(7)), A(state("running")), A(heard(7)), A(failure(7, -32603))]},
    "V22": {"22": [C(prompt(7)), A(failure(7, -32603)), A(heard(7))]},
    "V23": {
        "22": [C(call(7, "session/prompt", {"sessionId": "s1", "prompt": []}))],
        "21": [C(call(7, "session/prompt", {"sessionId": "s1", "prompt": []}))],
    },
    "V24": {
        "22": [*turn(7), close(), A(answer(3, {})), A(said("late"))],
        "11": [close(), A(answer(3, {})), A(message("late"))],
        "21": [close(), A(answer(2, {})), A(message("late"))],
    },
    "V25": {"22": [*begun(), A(said()), close(), A(answer(3, {}))]},
    "V26": {"22": [close(), A(failure(3, -32002))]},
    "V27": {"22": [*begun(), A(said()), C(prompt(8, "later")), C(cancel()), A(idle("cancelled")), T(1)]},
    "V28": {
        "22": [
            *begun(),
            A(job("t1", "in_progress")),
            C(call(5, "tool_call/cancel", {"sessionId": "s1", "toolCallId": "t1"})),
        ],
        "21": [
            C(prompt(7)),
            A(tool("t1", "in_progress")),
            C(call(5, "tool_call/cancel", {"sessionId": "s1", "toolCallId": "t1"})),
        ],
    },
    "V29": {
        "22": [*turn(7), A(taken(7))],
        "11": [C(prompt(7)), A(message()), ends_v1(), ends_v1()],
        "21": [C(prompt(7)), A(message()), A(answer(4242, {}))],
    },
    "V30": {
        "22": [A(withdraw(99))],
        "11": [C(withdraw(99))],
        "21": [C(withdraw(99))],
    },
    "V31": {
        "22": [C(call(7, "_x/a", {})), C(call(7, "_x/b", {}))],
        "11": [A(call(7, "_x/a", {})), A(call(7, "_x/b", {}))],
        "21": [C(call(7, "_x/a", {})), C(call(7, "_x/b", {}))],
    },
    "V32": {"22": [C(BATCH)], "11": [C(BATCH)], "21": [C(BATCH)]},
    "V33": {
        "22": [A(call(5, "session/prompt", {"sessionId": "s1", "prompt": [text_block("x")]}))],
        "11": [C(call(5, "fs/read_text_file", {"sessionId": "s1", "path": "/p/a"}))],
        "21": [
            C(call(5, "session/request_permission", {"sessionId": "s1", "title": "t", "options": OPTIONS}))
        ],
    },
    "V34": {
        "22": [*begun(), A(job("t1", "in_progress", kind="banana"))],
        "11": [C(prompt(7)), A(tool("t1", "pending", kind="banana"))],
        "21": [C(prompt(7)), A(tool("t1", "In Progress"))],
    },
    "V35": {"22": [C(prompt(7)), A(state("_busy")), A(heard(7)), A(taken(7)), A(said()), A(state("_rest"))]},
    "V36": {"22": [*begun(), A(said()), T(60), A(state("unknown"))]},
    "V37": {"22": [*begun(), A(state("running", "c9"))]},
    "V38": {"22": [*begun(), A(child()), C(prompt(5, session="c9"))]},
    "V39": {
        "22": [*WAITING, C(selected(90, "always"))],
        "11": [C(prompt(7)), A(ask_v1()), C(selected(90, "always"))],
        "21": [C(prompt(7)), A(ask_v1()), C(selected(1, "always"))],
    },
    "V40": {"11": [C(prompt(7)), A(ask_v1()), C(cancel()), T(1.5)]},
    "V41": {
        "22": [*begun(), A(job("t1", "in_progress")), C(cancel()), A(idle("cancelled"))],
        "11": [
            C(prompt(7)),
            A(tool("t1", "in_progress")),
            C(cancel()),
            A(answer(7, {"stopReason": "cancelled"})),
        ],
        "21": [
            C(prompt(7)),
            A(tool("t1", "in_progress")),
            C(cancel()),
            A(answer(2, {"stopReason": "cancelled"})),
        ],
    },
    "V42": {
        "22": [*begun(), A(update("usage_update", used=None, size=9))],
        "11": [C(prompt(7)), A(update("usage_update", used=None, size=9))],
        "21": [C(prompt(7)), A(update("usage_update", used=None, size=9))],
    },
    "V43": {"22": [resume(replay=True), *replayed(), A(update("notice", "s5", severity="info", title="n"))]},
    "V44": {
        "22": [C(prompt(7, session="s9"))],
        "11": [C(prompt(7, session="s9"))],
        "21": [C(prompt(7, session="s9"))],
    },
    "V45": {
        "22": [RAW(b"Migrating db...")],
        "11": [RAW(b"Migrating db...")],
        "21": [RAW(b"Migrating db...")],
    },
    "V47": {
        "22": [*CANCELLED, *begun(8), A(idle())],
        "11": [C(prompt(7)), A(message()), A(answer(7, {"stopReason": "cancelled"}))],
        "21": [C(prompt(7)), A(message()), A(answer(2, {"stopReason": "cancelled"}))],
    },
}
# rule -> what looks like it and is sound, between two v2 peers
NEAR_MISSES: dict[str, Script] = {
    "V01": [
        *turn(7),
        C(prompt(8)),
        A(heard(8)),
        A(taken(8)),
        A(state("running")),
        A(said("x", "a8")),
        A(idle()),
    ],
    "V02": [*begun(), A(said()), A(state("running"))],
    "V03": [A(said("hello", "b0")), C(prompt(7)), A(failure(7, -32000))],
    "V04": [*turn(7), A(idle(None))],
    "V05": [
        *begun(),
        A(state("requires_action")),
        T(0.5),
        A(question(90)),
        C(selected(90)),
        A(state("running")),
        T(5),
    ],
    "V06": [*begun(), A(job("t2", "in_progress")), A(question(90, "t1")), T(5), C(selected(90)), T(5)],
    "V07": [*WAITING, A(said("meanwhile")), C(selected(90)), A(job("t1", "failed")), A(idle("refusal"))],
    "V08": [*turn(7), A(state("running")), A(said("own", "b1")), A(idle())],
    "V09": [resume(), A(idle(None, "s5")), A(answer(3, {}))],
    "V10": [resume(replay=True), *replayed(), A(idle(None, "s5")), A(answer(3, {}))],
    "V11": [resume(), A(update("usage_update", "s5", used=1, size=9)), A(idle(None, "s5")), A(answer(3, {}))],
    "V12": [*turn(7), C(cancel()), A(idle("end_turn")), *turn(8)],
    "V13": [*CANCELLED, A(said("news", "b1")), *turn(8)],
    "V14": [*CANCELLED, C(cancel()), A(idle("cancelled"))],
    "V15": [*turn(7), A(idle("end_turn")), A(idle(None))],
    "V16": [*turn(7, background=[]), *turn(8, background=[])],
    "V17": [*begun(background=[]), A(terminal("T1")), A(idle(background=[listed()]))],
    "V18": [
        *begun(background=[]),
        A(terminal("T1")),
        A(idle(background=[listed()])),
        A(terminal("T1", exitStatus={"exitCode": 0})),
        A(idle(background=[])),
    ],
    "V19": [
        C(prompt(7)),
        A(state("running")),
        A(heard(7)),
        A(answer(7, {"messageId": "m7", "_meta": {"k": 1}})),
    ],
    "V20": [
        C(prompt(7)),
        A(state("running")),
        A(update("user_message_chunk", messageId="m7", content=text_block("g"))),
        A(update("user_message_chunk", messageId="m7", content=text_block("o"))),
        A(taken(7)),
        A(said()),
        A(idle()),
    ],
    "V21": [C(prompt(7)), A(state("running")), A(failure(7, -32603)), A(idle("error"))],
    "V22": [
        C(prompt(7)),
        A(failure(7, -32603)),
        C(prompt(8)),
        A(heard(8)),
        A(taken(8)),
        A(state("running")),
        A(idle()),
    ],
    "V23": [C(prompt(7, ""))],
    "V24": [*turn(7), close(), A(answer(3, {})), resume(4, "s1"), A(idle(None)), A(answer(4, {})), *turn(8)],
    "V25": [*begun(), A(said()), close(), A(idle("cancelled")), A(answer(3, {}))],
    "V26": [close(3, "s9"), A(answer(3, {}))],
    "V27": [
        *begun(),
        A(said()),
        C(prompt(8, "later")),
        C(cancel()),
        A(idle("cancelled")),
        A(failure(8, -32800)),
        T(5),
    ],
    "V28": [
        *begun(),
        A(job("t1", "in_progress", capabilities={"cancel": {}})),
        C(call(5, "tool_call/cancel", {"sessionId": "s1", "toolCallId": "t1"})),
        A(answer(5, {})),
    ],
    "V29": [C(call(7, "_x/a", {})), C(call("7", "_x/b", {})), A(answer("7", {})), A(answer(7, {}))],
    "V30": [
        A(call(60, "_x/ask", {})),
        C(answer(60, {})),
        A(withdraw(60)),
        C(call(7, "_x/a", {})),
        C(withdraw(7)),
    ],
    "V31": [C(call(7, "_x/a", {})), A(answer(7, {})), C(call(7, "_x/b", {})), A(call(7, "_x/c", {}))],
    "V32": [C(note("_x/list", [1, 2]))],
    "V33": [A(call(50, "_x/ask", {"sessionId": "s1"})), C(call(51, "_x/tell", {}))],
    "V34": [*begun(), A(job("t1", "in_progress", kind="_vendor/banana"))],
    "V35": [*begun(), A(state("_thinking")), A(said()), A(state("_resting")), A(idle())],
    "V36": [*begun(), A(said()), A(state("unknown")), A(state("running")), A(said("back"))],
    "V37": [*begun(), A(child()), A(state("running", "c9")), A(said("x", "b1", "c9"))],
    "V38": [*begun(), A(child(capabilities={"cancel": {}})), C(cancel("c9"))],
    "V39": [*WAITING, C(selected(90, "no")), A(state("running")), A(job("t1", "failed"))],
    "V40": [*WAITING, C(cancel()), T(5)],
    "V41": [
        *begun(),
        A(job("t1", "in_progress")),
        C(cancel()),
        A(job("t1", "cancelled")),
        A(idle("cancelled")),
    ],
    "V42": [
        *begun(),
        A(update("usage_update", used=1, size=9, cost=None)),
        A(update("_vendor/thing", what=1)),
    ],
    "V43": [
        resume(replay=True),
        *replayed(),
        A(idle(None, "s5")),
        A(update("notice", "s5", severity="info", title="n")),
    ],
    "V44": [resume(3, "s9"), A(idle(None, "s9")), A(answer(3, {})), C(prompt(7, session="s9"))],
    "V45": [RAW(b""), RAW(b"\r")],
    "V47": [
        *begun(),
        A(job("t1", "pending")),
        A(question(90, "t1")),
        A(state("requires_action")),
        C(dismissed(90)),
        A(idle("cancelled")),
    ],
}

OPENINGS: dict[str, Callable[..., Driver]] = {"11": both_v1, "22": both_v2, "21": bridged}
EVERYTHING = {"loadSession": True, "sessionCapabilities": {"close": {}, "resume": {}, "list": {}}}


def opened(pairing: str, **options: Any) -> Driver:
    """Two peers that have agreed, with `s1` open."""
    if pairing == "21":
        return bridged(agent=EVERYTHING, **options)
    driver = OPENINGS[pairing](**options)
    if pairing == "22":
        driver.client_sends(call(1, "session/new", {"cwd": "/p"}))
        driver.agent_sends(answer(1, {"sessionId": "s1"}))
    return driver


def play(driver: Driver, script: Script) -> Said:
    """Run a script; what came of all of it."""
    commands: list[Any] = []
    for kind, what in script:
        if kind == "client":
            step = driver.client_sends(what)
        elif kind == "agent":
            step = driver.agent_sends(what)
        elif kind == "raw":
            step = driver.agent_writes(what + b"\n")
        else:
            step = driver.advance(what)
        commands += step.commands
    return Said(commands)


def rules_of(said_by: Said) -> set[str]:
    """The rules of the catalogue that were found; rules of our own are left out."""
    return {rule for rule in said_by.rules if int(rule[1:]) <= 47}
