// A v1 agent on the official SDK's stable entry point, which has no example agent in its package. The text of a
// prompt says what the turn does. What was said is kept in the file that PEER_STORE names, for `session/load`.

import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { Readable, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk";

const { agent: to, client: from } = acp.methods;
const store = process.env.PEER_STORE;
const sessions = new Map(Object.entries(existsSync(store) ? JSON.parse(readFileSync(store, "utf8")) : {}));
const cancels = new Map();
const modes = {
  currentModeId: "code",
  availableModes: [
    { id: "code", name: "Code" },
    { id: "plan", name: "Plan" },
  ],
};

const text = (words) => ({ type: "text", text: words });
const says = (words) => ({ sessionUpdate: "agent_message_chunk", content: text(words) });
const options = [
  { optionId: "yes", name: "Allow", kind: "allow_once" },
  { optionId: "no", name: "Reject", kind: "reject_once" },
];

/** Tells the client, and remembers it for the replay. */
async function update(client, sessionId, change) {
  sessions.get(sessionId).push(change);
  await client.notify(from.session.update, { sessionId, update: change });
}

const turns = {
  async text(client, sessionId) {
    await update(client, sessionId, { sessionUpdate: "agent_thought_chunk", content: text("Let me see.") });
    await update(client, sessionId, says("Hello, "));
    await update(client, sessionId, says("world."));
    const entries = [{ content: "Greet", priority: "high", status: "completed" }];
    await update(client, sessionId, { sessionUpdate: "plan", entries });
    return "end_turn";
  },

  async edit(client, sessionId) {
    const toolCallId = "edit-1";
    const path = "/tmp/greeting.txt";
    await update(client, sessionId, {
      sessionUpdate: "tool_call",
      toolCallId,
      title: "Edit the greeting",
      kind: "edit",
      status: "pending",
      locations: [{ path, line: 1 }],
      content: [{ type: "diff", path, oldText: "Hello\n", newText: "Good morning\n" }],
    });
    const question = { sessionId, toolCall: { toolCallId, title: "Overwrite the greeting?" }, options };
    let allowed = false;
    try {
      const { outcome } = await client.request(from.session.requestPermission, question);
      if (outcome.outcome === "cancelled") return "cancelled";
      allowed = outcome.optionId === "yes";
    } catch (error) {
      await update(client, sessionId, says(`Nobody to ask: ${error.code}.`));
    }
    const change = { sessionUpdate: "tool_call_update", toolCallId };
    if (allowed) await update(client, sessionId, { ...change, status: "in_progress" });
    await update(client, sessionId, { ...change, status: allowed ? "completed" : "failed", rawOutput: { allowed } });
    await update(client, sessionId, says(allowed ? "Done." : "Left as it was."));
    return "end_turn";
  },

  async wait(client, sessionId) {
    const stopped = new Promise((resolve) => cancels.set(sessionId, resolve));
    await update(client, sessionId, says("Waiting."));
    await stopped;
    await update(client, sessionId, says("Stopped."));
    return "cancelled";
  },

  async fail(client, sessionId) {
    await update(client, sessionId, says("One moment."));
    throw new acp.RequestError(-32050, "the model is unavailable", { retry: false });
  },

  async refuse() {
    throw new acp.RequestError(-32051, "no such wish");
  },
};

acp
  .agent({ name: "peer" })
  .onRequest(to.initialize, () => ({
    protocolVersion: acp.PROTOCOL_VERSION,
    agentInfo: { name: "peer", version: "1" },
    agentCapabilities: { loadSession: true, promptCapabilities: { image: true } },
  }))
  .onRequest(to.session.new, () => {
    const sessionId = `session-${sessions.size + 1}`;
    sessions.set(sessionId, []);
    return { sessionId, modes };
  })
  .onRequest(to.session.load, async ({ params: { sessionId }, client }) => {
    if (!sessions.has(sessionId)) throw acp.RequestError.resourceNotFound(sessionId);
    for (const change of sessions.get(sessionId)) {
      await client.notify(from.session.update, { sessionId, update: change });
    }
    return { modes };
  })
  .onRequest(to.session.setMode, () => ({}))
  .onRequest(to.session.prompt, async ({ params: { sessionId, prompt }, client }) => {
    const wish = prompt.map((block) => block.text ?? "").join("");
    sessions.get(sessionId).push(...prompt.map((content) => ({ sessionUpdate: "user_message_chunk", content })));
    const stopReason = await turns[wish](client, sessionId);
    writeFileSync(store, JSON.stringify(Object.fromEntries(sessions)));
    return { stopReason };
  })
  .onNotification(to.session.cancel, ({ params }) => cancels.get(params.sessionId)?.())
  .connect(acp.ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)));
