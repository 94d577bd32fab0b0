// What every client script does: start the command it talks to, tell what it observes, end in order.

import { spawn } from "node:child_process";
import { openSync, writeSync } from "node:fs";
import { Readable, Writable } from "node:stream";

/** One line of JSON on stdout; `event` says what was observed. */
export function tell(event, fields = {}) {
  writeSync(1, JSON.stringify({ event, ...fields }) + "\n");
}

/**
 * Starts the command. Its stderr goes to the file that PEER_STDERR names, so that ours holds nothing but what
 * the SDK complains of. `leave()` closes its stdin and resolves with its exit status.
 */
export function launch(command) {
  const stderr = openSync(process.env.PEER_STDERR, "a");
  const child = spawn(command[0], command.slice(1), { stdio: ["pipe", "pipe", stderr] });
  const exited = new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("exit", (code, signal) => resolve(code ?? signal));
  });
  return {
    output: Writable.toWeb(child.stdin),
    input: Readable.toWeb(child.stdout),
    async leave() {
      child.stdin.end();
      return exited;
    },
  };
}

/** Everything observed so far, and a way to wait for more of it. */
export class Observations {
  #seen = [];
  #waiting = new Set();

  note(event, fields) {
    tell(event, fields);
    this.#seen.push({ event, ...fields });
    for (const check of this.#waiting) check();
  }

  /** Resolves once `count` observations satisfy the test. */
  until(test, count = 1) {
    return new Promise((resolve) => {
      const check = () => {
        if (this.#seen.filter(test).length >= count) {
          this.#waiting.delete(check);
          resolve();
        }
      };
      this.#waiting.add(check);
      check();
    });
  }
}
