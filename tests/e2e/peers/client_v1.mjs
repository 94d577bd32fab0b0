// A v1 client on the official SDK's stable entry point. Usage: client_v1.mjs SCENARIO COMMAND [ARG ...]

import * as acp from "@agentclientprotocol/sdk";
import { launch, Observations, tell } from "./launch.mjs";

const [scenario, ...command] = process.argv.slice(2);
const { agent: to, client: from } = acp.methods;
const seen = new Observations();
const isMessage = (entry) => entry.event === "update" && entry.update.sessionUpdate === "agent_message_chunk";

function answerPermission({ params }) {
  seen.note("permission", { request: params });
  return { outcome: { outcome: "selected", optionId: params.options[0].optionId } };
}

async function open(context) {
  const session = await context.request(to.session.new, { cwd: process.cwd(), mcpServers: [] });
  seen.note("session", { session });
  return session.sessionId;
}

async function prompt(context, sessionId, text) {
  try {
    const content = [{ type: "text", text }];
    seen.note("answered", { text, result: await context.request(to.session.prompt, { sessionId, prompt: content }) });
  } catch (error) {
    seen.note("refused", { text, code: error.code, message: error.message });
  }
}

const scenarios = {
  async turns(context) {
    const sessionId = await open(context);
    for (const text of ["text", "edit", "fail"]) await prompt(context, sessionId, text);
    const load = { sessionId, cwd: process.cwd(), mcpServers: [] };
    seen.note("loaded", { result: await context.request(to.session.load, load) });
  },

  async cancel(context) {
    const sessionId = await open(context);
    const sent = prompt(context, sessionId, "wait");
    await seen.until(isMessage);
    await context.notify(to.session.cancel, { sessionId });
    await sent;
  },
};

const peer = launch(command);
await acp
  .client({ name: "peer" })
  .onRequest(from.session.requestPermission, answerPermission)
  .onNotification(from.session.update, ({ params }) => seen.note("update", params))
  .connectWith(acp.ndJsonStream(peer.output, peer.input), async (context) => {
    const offer = { protocolVersion: acp.PROTOCOL_VERSION, clientInfo: { name: "peer", version: "1" } };
    seen.note("initialized", { result: await context.request(to.initialize, offer) });
    await scenarios[scenario](context);
  });
tell("exit", { status: await peer.leave() });
