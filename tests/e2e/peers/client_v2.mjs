// A v2 client on the official SDK's draft entry point. Usage: client_v2.mjs SCENARIO COMMAND [ARG ...]

import * as acp from "@agentclientprotocol/sdk/experimental/v2/unstable";
import { launch, Observations, tell } from "./launch.mjs";

const [scenario, ...command] = process.argv.slice(2);
const { agent: to, client: from } = acp.methods;
const seen = new Observations();

const isUpdate = (kind) => (entry) => entry.event === "update" && entry.update.sessionUpdate === kind;
const isIdle = (entry) => isUpdate("state_update")(entry) && entry.update.state === "idle";
const isPermission = (entry) => entry.event === "permission";

// What the scenario wants answered: an option's kind, or a function that decides at the time.
let permit = () => "reject_once";

async function answerPermission({ params, signal }) {
  seen.note("permission", { request: params });
  const kind = await permit(signal);
  const option = params.options.find((each) => each.kind === kind);
  if (option === undefined) return { outcome: { outcome: "cancelled" } };
  return { outcome: { outcome: "selected", optionId: option.optionId } };
}

/** Sends a prompt and tells how it was taken. */
async function prompt(context, sessionId, text) {
  try {
    const content = [{ type: "text", text }];
    const { messageId } = await context.request(to.session.prompt, { sessionId, prompt: content });
    seen.note("inserted", { text, messageId });
  } catch (error) {
    seen.note("refused", { text, code: error.code, message: error.message });
  }
}

async function open(context) {
  const session = await context.request(to.session.new, { cwd: process.cwd() });
  seen.note("session", { session });
  return session.sessionId;
}

async function resume(context, extra) {
  const params = { sessionId: process.env.PEER_SESSION, cwd: process.cwd(), ...extra };
  try {
    seen.note("resumed", { result: await context.request(to.session.resume, params) });
  } catch (error) {
    seen.note("refused", { code: error.code, message: error.message });
  }
}

const turn = (text) => async (context) => {
  const sessionId = await open(context);
  await prompt(context, sessionId, text);
  await seen.until(isIdle);
};

const scenarios = {
  // The SDK's own helper for sessions, as an application would use it.
  async text(context) {
    await context.buildSession(process.cwd()).withSession(async (session) => {
      seen.note("session", { session: session.newSessionResponse });
      const { messageId } = await session.prompt("text");
      seen.note("inserted", { text: "text", messageId });
      seen.note("read", { text: await session.readTextUntilIdle() });
    });
  },

  async allowed(context) {
    permit = () => "allow_once";
    await turn("edit")(context);
  },

  rejected: turn("edit"),

  // The second prompt is on its way before the first one can go on.
  async parallel(context) {
    const sessionId = await open(context);
    let second;
    permit = () => {
      second = prompt(context, sessionId, "text");
      return "allow_once";
    };
    await prompt(context, sessionId, "edit");
    await seen.until(isIdle, 2);
    await second;
  },

  // Two prompts at once, for an agent that asks nothing.
  async burst(context) {
    const sessionId = await open(context);
    await Promise.all([prompt(context, sessionId, "first"), prompt(context, sessionId, "second")]);
    await seen.until(isIdle, 2);
  },

  async cancel(context) {
    const sessionId = await open(context);
    const sent = prompt(context, sessionId, "wait");
    await seen.until(isUpdate("agent_message_chunk"));
    await context.notify(to.session.cancel, { sessionId });
    await seen.until(isIdle);
    await sent;
  },

  // A prompt held behind a cancelled turn is withdrawn with it.
  async cancelHeld(context) {
    const sessionId = await open(context);
    const sent = prompt(context, sessionId, "wait");
    await seen.until(isUpdate("agent_message_chunk"));
    const held = prompt(context, sessionId, "text");
    await context.notify(to.session.cancel, { sessionId });
    await Promise.all([sent, held, seen.until(isIdle)]);
  },

  // The question stays open until the agent, or who speaks for it, withdraws it.
  async cancelAsked(context) {
    permit = (signal) => new Promise((resolve) => signal.addEventListener("abort", () => resolve("none")));
    const sessionId = await open(context);
    const sent = prompt(context, sessionId, "edit");
    await seen.until(isPermission);
    await context.notify(to.session.cancel, { sessionId });
    await seen.until(isIdle);
    await sent;
  },

  error: turn("fail"),
  refused: turn("refuse"),

  async resume(context) {
    await resume(context, {});
  },

  async replay(context) {
    await resume(context, { replayFrom: { type: "start" } });
  },

  async close(context) {
    const sessionId = await open(context);
    const sent = prompt(context, sessionId, "wait");
    await seen.until(isUpdate("agent_message_chunk"));
    seen.note("closed", { result: await context.request(to.session.close, { sessionId }) });
    await sent;
  },

  async mode(context) {
    const sessionId = await open(context);
    const choice = { sessionId, configId: "mode", type: "id", value: "plan" };
    seen.note("set", { result: await context.request(to.session.setConfigOption, choice) });
  },
};

const peer = launch(command);
const stream = acp.ndJsonStream(peer.output, peer.input);
await acp
  .client({ name: "peer" })
  .onRequest(from.session.requestPermission, answerPermission)
  .onNotification(from.session.update, ({ params }) => seen.note("update", params))
  .connectWith(stream, async (context) => {
    const offer = { protocolVersion: acp.PROTOCOL_VERSION, info: { name: "peer", version: "1" }, capabilities: {} };
    seen.note("initialized", { result: await context.request(to.initialize, offer) });
    await scenarios[scenario](context);
    // Whatever the proxy still had to say has arrived when this is answered.
    seen.note("listed", { result: await context.request(to.session.list, {}) });
  });
tell("exit", { status: await peer.leave() });
