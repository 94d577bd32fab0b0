"""The catalogue of rules: what each finding means, and how grave it is (lifecycle §3; from V48 on our own)."""

from __future__ import annotations

from typing import Final, NamedTuple


class Rule(NamedTuple):
    """One rule: `severity` is `error`, `warning` or `info`."""

    severity: str
    meaning: str


RULES: Final[dict[str, Rule]] = {
    "V01": Rule("error", "output of a turn while the session is told idle"),
    "V02": Rule("error", "a turn ended without an idle state"),
    "V03": Rule("error", "output of a turn in a session that never told a state"),
    "V04": Rule("warning", "the idle that ends a turn gives no stop reason"),
    "V05": Rule("warning", "requires_action although nobody is asked anything"),
    "V06": Rule("warning", "running although all that is left waits for the user"),
    "V07": Rule("error", "work goes on while the session is told requires_action"),
    "V08": Rule("info", "running right after a late answer, without a prompt"),
    "V09": Rule("error", "a resume answered without the current state before it"),
    "V10": Rule("warning", "the state of a resumed session told before its replay ended"),
    "V11": Rule("error", "a replay nobody asked for"),
    "V12": Rule("error", "a cancelled turn that did not end as cancelled"),
    "V13": Rule("error", "output of cancelled work after its end was told"),
    "V14": Rule("info", "idle as cancelled although nothing was at work"),
    "V15": Rule("warning", "an idle repeated with another stop reason or usage"),
    "V16": Rule("error", "background work left out after it was once reported"),
    "V17": Rule("error", "a background item that was never announced, or is listed twice"),
    "V18": Rule("warning", "a background item gone without a final status"),
    "V19": Rule("error", "a prompt answered without a message id"),
    "V20": Rule("error", "a prompt never echoed, or echoed under another id"),
    "V21": Rule("error", "a prompt refused after it was taken in"),
    "V22": Rule("error", "a message for a prompt that was refused"),
    "V23": Rule("warning", "an empty prompt"),
    "V24": Rule("error", "traffic of a session after it was closed"),
    "V25": Rule("error", "a close answered while work was open, without an end"),
    "V26": Rule("warning", "closing a session nobody knows was refused"),
    "V27": Rule("error", "a waiting prompt left unanswered at a cancel or close"),
    "V28": Rule("error", "a cancel of something that is not offered for it"),
    "V29": Rule("error", "a second answer, or an answer to nothing"),
    "V30": Rule("warning", "a cancelled request that was never received"),
    "V31": Rule("error", "a request id that is null, fractional or already in use"),
    "V32": Rule("error", "a batch"),
    "V33": Rule("error", "a request before initialize, or in the wrong direction"),
    "V34": Rule("error", "a value outside the vocabulary that is no extension"),
    "V35": Rule("error", "extension states only, never a standard one"),
    "V36": Rule("warning", "unknown reported for mere silence"),
    "V37": Rule("error", "traffic of a child session before its parent named it"),
    "V38": Rule("error", "a request to a child session that it does not allow"),
    "V39": Rule("warning", "a permission answered with an option nobody offered, or an unknown outcome"),
    "V40": Rule("warning", "a permission left open by a client that cancelled"),
    "V41": Rule("warning", "a tool call left open at a cancel or close"),
    "V42": Rule("error", "a known message with a malformed payload"),
    "V43": Rule("warning", "a notice inside a replay"),
    "V44": Rule("error", "a request for a session that is not open here"),
    "V45": Rule("warning", "a line that is no message"),
    "V46": Rule("warning", "a turn that stalled or ran beyond its ceiling"),
    "V47": Rule("warning", "an end that nobody can be held to: cancelled unasked, or empty after a cancel"),
    "V48": Rule("warning", "a line over the size limit"),
    "V49": Rule("info", "a byte order mark before a message"),
    "V50": Rule("warning", "a protocol version that is no number, or a number the sender does not speak"),
    "V51": Rule("warning", "an error answer with id null, which answers nothing"),
    "V52": Rule("warning", "a call to something nobody offered"),
    "V53": Rule("warning", "the recording failed and was cut short"),
    "V54": Rule("info", "a value the other protocol version would not take, passed all the same"),
    "V55": Rule("error", "a plugin failed"),
    "V56": Rule("info", "a permission decided by rule"),
    "V57": Rule("warning", "an answer or an end told in a silent peer's name"),
    "V58": Rule("info", "what that peer said later, and reached nobody"),
    "V59": Rule("warning", "the agent restarted, or no longer"),
    "V60": Rule("info", "a config category nobody has listed: a minted value (V34) that harms nothing"),
    "V61": Rule("info", "a value the agent made up, counted"),
}
