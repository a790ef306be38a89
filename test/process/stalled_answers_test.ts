import assert from "node:assert/strict";
import { connectionsTo, type ListedConnection, unsentOf } from "../../src/process/tcp_connections.ts";
import { openCut, StalledAnswers } from "../../src/process/stalled_answers.ts";
import { until } from "../support/until.ts";

const HEX = (value: number) => value.toString(16).toUpperCase().padStart(8, "0");
const listed = (inode: number, unsent: number): ListedConnection => ({
  key: `${inode}`,
  state: "01",
  rest: `${HEX(unsent)}:00000000 04:00000014 00000000     0        0 ${inode} 2 0000000000000000`,
});

Deno.test("a client that takes nothing is cut off in the end, and one that takes a little stays", () => {
  const cut: string[] = [];
  const stalled = new StalledAnswers({ stalledMs: 10_000, stalledMax: 10 }, (inodes) => {
    cut.push(...inodes);
    return inodes.size;
  });
  for (let second = 0; second < 30; second += 2) {
    stalled.look([listed(1, 500_000), listed(2, 500_000 - second), listed(3, 0)], second * 1000);
    assert.deepEqual(cut.includes("1"), second >= 10, `${second}`);
  }
  assert.ok(cut.every((inode) => inode === "1"));
});

Deno.test("of too many clients that take nothing, those are cut off that have done so for longest", () => {
  const cut: string[] = [];
  const stalled = new StalledAnswers({ stalledMs: 60_000, stalledMax: 3 }, (inodes) => {
    cut.push(...inodes);
    return inodes.size;
  });
  const moving = (ms: number) => Array.from({ length: 20 }, (_, index) => listed(100 + index, 1e6 - ms));
  stalled.look([listed(1, 9), listed(2, 9), ...moving(0)], 0);
  stalled.look([listed(1, 9), listed(2, 9), listed(3, 9), listed(4, 9), ...moving(1)], 2_000);
  assert.deepEqual(cut, []);
  assert.equal(stalled.look([1, 2, 3, 4].map((inode) => listed(inode, 9)).concat(moving(2)), 4_000), 1);
  assert.deepEqual(cut, ["1"]);
});

Deno.test("a client that asks again and again is not cut off, though its last acknowledgement is always late", async () => {
  const cut: string[] = [];
  const stalled = new StalledAnswers({ stalledMs: 1, stalledMax: 0 }, (inodes) => {
    cut.push(...inodes);
    return inodes.size;
  });
  await using server = Deno.serve(
    { port: 0, hostname: "127.0.0.1", onListen() {} },
    () => new Response("every answer has the same length"),
  );
  const { hostname, port } = server.addr as Deno.NetAddr;
  using client = await Deno.connect({ hostname, port });
  const room = new Uint8Array(4096);
  let behind = 0;
  await until("it is behind at many looks", async () => {
    await client.write(new TextEncoder().encode("GET / HTTP/1.1\r\nhost: x\r\n\r\n"));
    await client.read(room);
    const connections = [...connectionsTo({ hostname, port })];
    if (connections.some((connection) => unsentOf(connection) > 0)) behind++;
    stalled.look(connections, behind * 1000);
    return behind > 50;
  });
  assert.deepEqual(cut, []);
});

// The C library stays loaded.
Deno.test("the connection of a client that does not read is reset, and one that reads gets it all", {
  sanitizeResources: false,
}, async () => {
  const bytes = 32 * 2 ** 20;
  await using server = Deno.serve(
    { port: 0, hostname: "127.0.0.1", onListen() {} },
    () => new Response(new Uint8Array(bytes)),
  );
  const { hostname, port } = server.addr as Deno.NetAddr;
  const ask = async () => {
    const connection = await Deno.connect({ hostname, port });
    await connection.write(new TextEncoder().encode("GET / HTTP/1.1\r\nhost: x\r\n\r\n"));
    return connection;
  };
  using silent = await ask();
  const stalled = new StalledAnswers({ stalledMs: 1, stalledMax: 8 }, openCut()!);
  let looks = 0;
  await until("it is cut off", () => stalled.look(connectionsTo({ hostname, port }), ++looks * 1000) === 1);
  await assert.rejects(async () => {
    const room = new Uint8Array(2 ** 20);
    while (await silent.read(room) !== null);
  });
  assert.equal((await (await fetch(`http://${hostname}:${port}/`)).arrayBuffer()).byteLength, bytes);
});
