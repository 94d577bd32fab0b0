"""What follows from the agent's name and version: its profile, and a count of the values it makes up.

Both are known only once `initialize` is answered, so what the profile says comes late into a chain that
stands already.
"""

from __future__ import annotations

from acp_proxy.acp.version import Version
from acp_proxy.filters.base import Filter
from acp_proxy.inference.engine import Engine
from acp_proxy.inference.findings import FindingLog
from acp_proxy.jsonrpc.message import Json
from acp_proxy.relay.options import RelayOptions


def meet(
    info: Json, version: Version, options: RelayOptions, engine: Engine, findings: FindingLog
) -> tuple[RelayOptions, Filter | None]:
    """Take note of an agent: the options that hold with it, and a stage to stand before the engine, if any.

    `info` is what it says of itself (`name`, `version`); what it leaves out is taken as empty.
    """
    from acp_proxy.inference.sightings import Sightings

    name, number = (text if type(text) is str else "" for text in (info.get("name"), info.get("version")))
    engine.sightings = Sightings(findings, version, name, number)
    content = options.profile.content(name, number) if options.profile is not None else None
    if content is None:
        return options, None
    adopted = options.under(content)
    rules = engine.rules
    rules.agent_initiated = adopted.agent_initiated
    rules.any_wait = adopted.requires_action == "any_wait"
    rules.quiet_time = adopted.quiet_time
    rules.end_markers = adopted.end_markers
    rules.synonyms = adopted.synonyms
    rules.hints = content.hints
    findings.false_findings = content.false_findings
    stage: Filter | None = None
    if adopted.idle_cancel == "swallow" and options.idle_cancel != "swallow":
        from acp_proxy.policy.idle_cancel import IdleCancel

        stage = IdleCancel(engine)
    return adopted, stage
