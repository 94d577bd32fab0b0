// A v2 agent on the official SDK's draft entry point: every turn asks for a permission.

import { Readable, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk/experimental/v2/unstable";

const { agent: to, client: from } = acp.methods;
const options = [
  { optionId: "yes", name: "Allow", kind: "allow_once" },
  { optionId: "no", name: "Reject", kind: "reject_once" },
];

async function work(client, sessionId) {
  const update = (change) => client.notify(from.session.update, { sessionId, update: change });
  const tool = { sessionUpdate: "tool_call_update", toolCallId: "edit-1" };
  await update({ ...tool, title: "Edit the greeting", kind: "edit", status: "pending" });
  const subject = { type: "tool_call", toolCall: { toolCallId: "edit-1" } };
  const asked = client.request(from.session.requestPermission, { sessionId, title: "Edit?", subject, options });
  await update({ sessionUpdate: "state_update", state: "requires_action" });
  const { outcome } = await asked;
  await update({ sessionUpdate: "state_update", state: "running" });
  await update({ ...tool, status: outcome.optionId === "yes" ? "completed" : "failed" });
  const content = { type: "text", text: "Done." };
  await update({ sessionUpdate: "agent_message_chunk", messageId: "answer", content });
  await update({ sessionUpdate: "state_update", state: "idle", stopReason: "end_turn" });
}

acp
  .agent({ name: "peer" })
  .onRequest(to.initialize, () => ({
    protocolVersion: acp.PROTOCOL_VERSION,
    info: { name: "peer", version: "1" },
    capabilities: { session: {} },
  }))
  .onRequest(to.session.new, () => ({ sessionId: "session-1" }))
  .onRequest(to.session.list, () => ({ sessions: [] }))
  .onRequest(to.session.prompt, async ({ params: { sessionId, prompt }, client }) => {
    await client.notify(from.session.update, {
      sessionId,
      update: { sessionUpdate: "state_update", state: "running" },
    });
    await client.notify(from.session.update, {
      sessionId,
      update: { sessionUpdate: "user_message", messageId: "question", content: prompt },
    });
    // In a later round, so that the response goes first.
    setImmediate(() => work(client, sessionId));
    return { messageId: "question" };
  })
  .connect(acp.ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)));
