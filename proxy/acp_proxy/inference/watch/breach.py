"""One breach as a detector tells it: the rule, who is at fault, the evidence, and what a repair needs."""

from __future__ import annotations

from typing import Any, Final

from acp_proxy.jsonrpc.message import Message

# Where each rule of lifecycle §3 comes from.
SOURCES: Final[dict[str, str]] = {
    "V01": "LC-01",
    "V02": "LC-02",
    "V03": "lifecycle 2.1",
    "V04": "LC-03",
    "V05": "LC-08",
    "V06": "LC-08",
    "V07": "LC-10",
    "V08": "LC-12",
    "V09": "LC-14",
    "V10": "LC-14",
    "V11": "LC-14",
    "V12": "LC-17",
    "V13": "LC-41",
    "V14": "LC-41",
    "V15": "LC-15",
    "V16": "LC-20",
    "V17": "LC-21",
    "V18": "LC-21",
    "V19": "LC-30",
    "V20": "LC-31",
    "V21": "LC-32",
    "V22": "LC-32",
    "V23": "LC-34",
    "V24": "LC-50",
    "V25": "LC-50",
    "V26": "LC-52",
    "V27": "LC-42",
    "V28": "LC-60",
    "V29": "LC-70",
    "V30": "LC-70",
    "V31": "LC-73",
    "V33": "LC-86",
    "V34": "LC-23",
    "V35": "LC-23",
    "V36": "LC-22",
    "V37": "LC-80",
    "V38": "LC-82",
    "V39": "LC-43",
    "V40": "LC-92",
    "V41": "LC-45",
    "V42": "LC-24",
    "V43": "lifecycle 3",
    "V44": "LC-85",
    "V47": "LC-17",
    "V60": "LC-23",
}


class Breach:
    """A rule broken by the peer at `leg`.

    `frames` are the numbers of the frames that show it. `text` is for people and holds no message
    content. `detail` is what the repair of this rule needs, as the detector that finds it says. `again`:
    more of what was told once already, to be treated alike but not told anew.
    """

    __slots__ = ("again", "detail", "frames", "leg", "rule", "session", "text")

    def __init__(
        self,
        rule: str,
        leg: str,
        session: str | None,
        text: str,
        frames: tuple[int, ...] = (),
        detail: Any = None,
        again: bool = False,
    ) -> None:
        self.rule = rule
        self.leg = leg
        self.session = session
        self.text = text
        self.frames = frames
        self.detail = detail
        self.again = again

    def __repr__(self) -> str:
        return f"<Breach {self.rule} by {self.leg} in {self.session!r}: {self.text}>"

    @property
    def source(self) -> str:
        """The rule of lifecycle §1 that is broken."""
        return SOURCES[self.rule]


def frames_of(*evidence: Message | int | None) -> tuple[int, ...]:
    """Frame numbers out of messages and numbers kept earlier, in order, each once; 0 and None say nothing."""
    numbers: list[int] = []
    for item in evidence:
        number = item if isinstance(item, int) else frame_number(item)
        if number and number not in numbers:
            numbers.append(number)
    return tuple(numbers)


def frame_number(message: Message | None) -> int:
    """The number of the frame a message came in, 0 when it came in none."""
    return message.frame.number if message is not None and message.frame is not None else 0
