// Preloaded into a Node agent: refuses every connection that leaves the machine, and notes whom it was for.

const fs = require("node:fs");
const net = require("node:net");

const LOOPBACK = new Set(["127.0.0.1", "::1", "localhost", undefined]);
const connect = net.Socket.prototype.connect;

net.Socket.prototype.connect = function (...given) {
  const first = Array.isArray(given[0]) ? given[0][0] : given[0];
  const target = typeof first === "object" && first !== null ? first : { port: first, host: given[1] };
  const isPath = target.path !== undefined || (typeof first === "string" && Number.isNaN(Number(first)));
  if (!isPath && !LOOPBACK.has(target.host)) {
    fs.appendFileSync(process.env.PEER_STRANGERS, `${target.host}:${target.port}\n`);
    process.nextTick(() => this.destroy(new Error(`not on this machine: ${target.host}`)));
    return this;
  }
  return connect.apply(this, given);
};
