/** What one caller does for some seconds to stop the service or to fill its memory. attacks.ts measures what
 * another caller sees of it.
 */

/** What an attack has to work with. */
export interface AttackContext {
  readonly hostname: string;
  readonly port: number;
  /** The key of the caller that attacks. */
  readonly key: string;
  /** A run of this caller, with a large decode and {@link EVENTS} events of 60 KB. */
  readonly runId: string;
  /** When the attack has to be over, in milliseconds of `performance.now()`. */
  readonly untilMs: number;
}

export interface Attack {
  readonly name: string;
  run(context: AttackContext): Promise<void>;
}

/** Large events of the run: what a stream replays. */
export const EVENTS = 40;

/** Chunks of one byte that are written at once. */
const CHUNKS = new TextEncoder().encode("1\r\n \r\n".repeat(1000));
const FORM = '--X\r\nContent-Disposition: form-data; name="file"; filename="a.mp4"\r\n\r\n';
const HALF_BODIES = 60;
const HALF_BODY = new TextEncoder().encode(`{"model":"${"x".repeat(4 * 2 ** 20 - 100)}`);
/** Milliseconds until a refused request is sent again. */
const AGAIN_MS = 250;
const UNREAD_PAGES = 600;
const UNREAD_STREAMS = 300;
const READS = 40;
/** Model to ask. The schema below is expensive, as `uniqueItems` compares each item with each other. */
const MODEL = "Qwen/Qwen3-VL-4B-Instruct";
const SCHEMA = {
  type: "array",
  uniqueItems: true,
  items: { anyOf: [{ type: "object" }, { pattern: "(a+)+$" }] },
};

export const ATTACKS: readonly Attack[] = [
  {
    name: "JSON bodies in chunks of one byte",
    run: (context) => chunks(context, "/v1/runs", "application/json", ""),
  },
  {
    name: "uploads in chunks of one byte",
    run: (context) => chunks(context, "/v1/upload", "multipart/form-data; boundary=X", FORM),
  },
  { name: "bodies without their last byte", run: halfBodies },
  { name: "schemas that take long to check", run: (context) => together(8, context, () => infer(context)) },
  { name: "reads of a large decode", run: (context) => together(READS, context, () => readSignals(context)) },
  { name: "pages that are not read", run: (context) => unread(context, UNREAD_PAGES, "/console/") },
  {
    name: "event streams that are not read",
    run: (context) => unread(context, UNREAD_STREAMS, `/v1/runs/${context.runId}/events/stream?after=0`),
  },
  { name: "wrong keys", run: (context) => together(8, context, () => wrongKey(context)) },
  { name: "lists of runs", run: (context) => together(8, context, () => read(context, "/v1/runs")) },
];

/** Does `work` again and again, `count` times at once, until the attack has to be over. */
async function together(count: number, { untilMs }: AttackContext, work: () => Promise<void>): Promise<void> {
  await Promise.all(Array.from({ length: count }, async () => {
    while (performance.now() < untilMs) await work();
  }));
}

function chunks(context: AttackContext, path: string, type: string, before: string): Promise<void> {
  const head = `POST ${path} HTTP/1.1\r\nHost: x\r\nx-api-key: ${context.key}\r\ncontent-type: ${type}\r\n` +
    `transfer-encoding: chunked\r\n\r\n`;
  const first = before === "" ? "" : `${before.length.toString(16)}\r\n${before}\r\n`;
  return together(4, context, async () => {
    using connection = await connected(context, head + first);
    try {
      while (performance.now() < context.untilMs) await writeAll(connection, CHUNKS);
    } catch { /* it was refused: once more */ }
  });
}

async function halfBodies(context: AttackContext): Promise<void> {
  const head = `POST /v1/runs HTTP/1.1\r\nHost: x\r\nx-api-key: ${context.key}\r\n` +
    `content-type: application/json\r\ncontent-length: ${HALF_BODY.length + 2}\r\n\r\n`;
  await together(HALF_BODIES, context, async () => {
    using connection = await connected(context, head);
    try {
      await writeAll(connection, HALF_BODY);
      await connection.read(new Uint8Array(1024));
    } catch { /* it was refused: once more */ }
    await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
  });
}

/** Asks for `path` on so many connections and takes nothing of the answers. */
async function unread(context: AttackContext, count: number, path: string): Promise<void> {
  const head = `GET ${path} HTTP/1.1\r\nHost: x\r\nx-api-key: ${context.key}\r\n\r\n`;
  const opened: Deno.TcpConn[] = [];
  try {
    for (let i = 0; i < count && performance.now() < context.untilMs; i++) {
      opened.push(await connected(context, head));
    }
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, context.untilMs - performance.now())));
  } finally {
    for (const connection of opened) connection.close();
  }
}

async function infer(context: AttackContext): Promise<void> {
  await post(context, "/v1/infer", { model: MODEL, prompt: "x", output_schema: SCHEMA });
}

async function readSignals(context: AttackContext): Promise<void> {
  await read(context, `/v1/runs/${context.runId}/signals?points=1`);
}

async function wrongKey(context: AttackContext): Promise<void> {
  await read({ ...context, key: crypto.randomUUID() }, "/v1/runs");
}

async function post(context: AttackContext, path: string, body: unknown): Promise<void> {
  const response = await fetch(`http://${context.hostname}:${context.port}${path}`, {
    method: "POST",
    headers: { "x-api-key": context.key, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  await response.body?.cancel();
}

async function read({ hostname, port, key }: AttackContext, path: string): Promise<void> {
  const response = await fetch(`http://${hostname}:${port}${path}`, { headers: { "x-api-key": key } });
  await response.arrayBuffer();
}

async function connected({ hostname, port }: AttackContext, head: string): Promise<Deno.TcpConn> {
  const connection = await Deno.connect({ hostname, port });
  await writeAll(connection, new TextEncoder().encode(head));
  return connection;
}

async function writeAll(connection: Deno.TcpConn, bytes: Uint8Array): Promise<void> {
  for (let at = 0; at < bytes.length;) at += await connection.write(bytes.subarray(at));
}
