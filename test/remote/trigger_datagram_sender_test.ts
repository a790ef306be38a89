import { deepEqual, equal } from "node:assert/strict";
import { join } from "node:path";
import { readConfig } from "../../src/contract/config.ts";
import { quietLog } from "../../src/base/log.ts";
import { realWorld } from "../../src/base/world.ts";
import { permissionsOf } from "../../src/process/sandbox.ts";
import { TriggerDatagramSender } from "../../src/remote/trigger_datagram_sender.ts";

const WORLD = realWorld(quietLog());

/** A folder for the listener's socket, and the sender to it. */
function openSender() {
  const folder = Deno.makeTempDirSync({ prefix: "service-datagram-" });
  const path = join(folder, "out.sock");
  const datagrams = TriggerDatagramSender.open(path, WORLD);
  return {
    path,
    send: (message: string) => datagrams.send(message),
    close: () => datagrams[Symbol.dispose](),
    listen() {
      const socket = Deno.listenDatagram({ transport: "unixpacket", path });
      const next = async () => new TextDecoder().decode((await socket.receive())[0]);
      return { next, [Symbol.dispose]: () => socket.close() };
    },
    [Symbol.dispose]() {
      datagrams[Symbol.dispose]();
      Deno.removeSync(folder, { recursive: true });
    },
  };
}

Deno.test("datagrams arrive whole and in order, sent one by one or at once", async () => {
  using out = openSender();
  using listener = out.listen();
  equal(await out.send('{"seq":1}'), true);
  equal(await listener.next(), '{"seq":1}');
  const messages = Array.from({ length: 8 }, (_, index) => `message ${index}`);
  deepEqual(await Promise.all(messages.map((message) => out.send(message))), messages.map(() => true));
  for (const message of messages) equal(await listener.next(), message);
});

Deno.test("a listener may start later, close its socket and bind it again", async () => {
  using out = openSender();
  equal(await out.send("to nobody"), false);
  {
    using listener = out.listen();
    equal(await out.send("first"), true);
    equal(await listener.next(), "first");
  }
  equal(await out.send("to a dead socket"), false);
  Deno.removeSync(out.path);
  equal(await out.send("to a missing file"), false);
  using listener = out.listen();
  equal(await out.send("second"), true);
  equal(await listener.next(), "second");
});

Deno.test("a path that is not a datagram socket and a message that is too long lose the datagram", async () => {
  using out = openSender();
  Deno.writeTextFileSync(out.path, "");
  equal(await out.send("to a file"), false);
  Deno.removeSync(out.path);
  using listener = out.listen();
  equal(await out.send("x".repeat(4_000_000)), false);
  equal(await out.send("after it"), true);
  equal(await listener.next(), "after it");
});

Deno.test("a listener that does not read loses datagrams, the sender does not wait for it, and it gets later ones", async () => {
  using out = openSender();
  using listener = out.listen();
  let taken = 0;
  while (taken < 10_000 && await out.send(`${taken}`)) taken++;
  // The buffer of the socket is full: every datagram is lost at once.
  deepEqual(
    new Set(await Promise.all(Array.from({ length: 100 }, () => out.send("lost")))),
    new Set([false]),
  );
  for (let index = 0; index < taken; index++) equal(await listener.next(), `${index}`);
  // The datagram that found the buffer full was counted as lost, but the platform still delivers it.
  equal(await listener.next(), `${taken}`);
  equal(await out.send("again"), true);
  equal(await listener.next(), "again");
});

Deno.test("a closed sender sends nothing", async () => {
  using out = openSender();
  using _listener = out.listen();
  out.close();
  equal(await out.send("late"), false);
});

Deno.test("the sandboxed service reaches the configured socket and no other one", async () => {
  using configured = openSender();
  using other = openSender();
  using listener = configured.listen();
  using _otherListener = other.listen();
  const permissions = permissionsOf({
    config: readConfig({
      SERVICE_REQUIRE_API_KEY: "false",
      SERVICE_TRIGGER_LOCAL_OUTPUT_SOCKET: configured.path,
    }),
    places: {
      dataDir: "/nowhere",
      uploadRoot: "/nowhere",
      tempDir: "/nowhere",
      socketDir: "/nowhere",
      ingestRoots: [],
      codeDirs: [],
      pagesDir: "/nowhere",
    },
  });
  const sentTo = async (path: string) => {
    const worker = new Worker(new URL("../support/datagram_worker.ts", import.meta.url), {
      type: "module",
      deno: { permissions },
    });
    try {
      return await new Promise((resolve, reject) => {
        worker.onmessage = ({ data }) => resolve(data);
        worker.onerror = (event) => {
          event.preventDefault();
          reject(new Error(event.message));
        };
        worker.postMessage(path);
      });
    } finally {
      worker.terminate();
    }
  };
  equal(await sentTo(configured.path), "taken");
  equal(await listener.next(), "from inside");
  equal(await sentTo(other.path), "lost");
});
