import assert from "node:assert/strict";
import { join } from "node:path";
import { openLog } from "../../../src/base/log.ts";
import { event } from "../../../src/model/events/event_table.ts";
import { LIMITS } from "../../../src/contract/limits.ts";
import { startServer } from "../../../scripts/server.ts";
import { TemporaryFolder } from "../../support/folders.ts";
import { TEST_ROOT } from "../../support/http/tls_server.ts";
import { needing } from "../../support/needs.ts";
import { POSTGRESQL, PostgresServer, SlowWire, type UrlOptions } from "../../support/postgresql.ts";
import {
  newRun,
  REACHES_IN,
  startService,
  type TestOptions,
  type TestService,
} from "../../support/service.ts";
import { until } from "../../support/until.ts";

/** The database for all tests of this file; each keeps its rows in a schema of its own. */
let database: PostgresServer;

Deno.test.beforeAll(async () => {
  if (POSTGRESQL.isMet()) database = await PostgresServer.start({ isTls: true });
});
Deno.test.afterAll(() => database?.[Symbol.asyncDispose]());

let schemas = 0;

function settings(url: UrlOptions = {}) {
  const schema = `mirror ${++schemas} "of" a test`;
  return { SERVICE_MIRROR_URL: database.url(url), SERVICE_MIRROR_MODULE: schema };
}

function testing(name: string, run: () => Promise<void>): void {
  Deno.test({ ...needing(POSTGRESQL, name), fn: run });
}

/** Submits feedback; its id, and whether the answer says that it is in the database. */
async function submit(
  test: TestService,
  runId: string,
  feedback = "good",
): Promise<[id: number, isMirrored: boolean]> {
  const body = { rating: 7, category: "accuracy", feedback };
  const { status, json } = await test.call("POST", `/v1/runs/${runId}/feedback`, body);
  assert.equal(status, 200, JSON.stringify(json));
  return [json.feedback_id, json.mirrored_to_database];
}

async function look(test: TestService): Promise<Record<string, unknown>> {
  return (await test.call("GET", "/v1/system")).json.mirror;
}

async function isUp(test: TestService): Promise<boolean> {
  return (await look(test)).state === "up";
}

async function seqs(schema: string): Promise<number[]> {
  const rows = await database.rows("feedback", schema.replaceAll('"', '""'));
  return rows.map(({ seq }) => Number(seq));
}

/** Waits until the database has exactly these. */
async function untilMirrored(schema: string, ids: readonly number[]): Promise<void> {
  await until(`rows ${ids}`, async () => (await seqs(schema).catch(() => [])).length >= ids.length);
  assert.deepEqual(await seqs(schema), ids);
}

async function metric(test: TestService, name: string): Promise<number> {
  const { text } = await test.send("/v1/metrics", { headers: { "x-api-key": "key-of-a" } });
  return Number(new RegExp(`^${name} (\\S+)$`, "m").exec(text)![1]);
}

/** The lines that a service writes which is opened with these options. */
function withLines(options: TestOptions = {}): { readonly lines: string[]; readonly options: TestOptions } {
  const lines: string[] = [];
  const writer = {
    writeSync(bytes: Uint8Array) {
      lines.push(new TextDecoder().decode(bytes));
      return bytes.length;
    },
  };
  return { lines, options: { ...options, log: openLog("info", { stdout: writer, stderr: writer }) } };
}

testing(
  "an answer says that feedback is in the database when it is, and a restart copies nothing again",
  async () => {
    const env = settings();
    const schema = env.SERVICE_MIRROR_MODULE;
    // An answer waits for the database for 100 ms of the service, which may take longer on a busy machine.
    await using test = await startService(env, { timerSpeed: 0.05 });
    await until(() => isUp(test));
    const runId = await newRun(test);
    const text = 'tab\t"quote" \\ \'; DROP TABLE x; -- 🚗 \0 end';
    const [id, isMirrored] = await submit(test, runId, text);
    assert.equal(isMirrored, true);
    const [row] = await database.rows("feedback", schema.replaceAll('"', '""'));
    const { events } = (await test.call("GET", `/v1/runs/${runId}/events`)).json;
    assert.match(String(row!.instance_id), /^[0-9a-f]{32}$/);
    assert.deepEqual({ ...row, instance_id: "" }, {
      instance_id: "",
      seq: String(id),
      run_id: runId,
      session_id: "",
      rating: "7",
      category: "accuracy",
      feedback: text.replace("\0", "\uFFFD"),
      recorded_at: new Date(events[1].pts_ms),
    });
    assert.deepEqual(await look(test), { ...await look(test), state: "up", mirrored_seq: id, lag_ms: 0 });
    assert.equal(await metric(test, "service_mirror_up"), 1);
    assert.equal(await metric(test, "service_mirror_rows_total"), 1);
    await test.restart();
    await until(() => isUp(test));
    assert.equal((await submit(test, runId))[1], true);
    await untilMirrored(schema, [id, id + 1]);
    assert.equal(await metric(test, "service_mirror_rows_total"), 1);
  },
);

testing("what a process that was killed had written before its cursor is not there twice", async () => {
  const env = settings();
  const schema = env.SERVICE_MIRROR_MODULE;
  await using test = await startService(env);
  await until(() => isUp(test));
  const runId = await newRun(test);
  const ids = [(await submit(test, runId))[0]];
  const cursor = join(test.dataDir, "mirror", "cursor.json");
  await untilMirrored(schema, ids);
  const before = Deno.readTextFileSync(cursor);
  for (let count = 0; count < 5; count++) ids.push((await submit(test, runId))[0]);
  await untilMirrored(schema, ids);
  await test.restart(() => Deno.writeTextFileSync(cursor, before));
  ids.push((await submit(test, runId))[0]);
  await untilMirrored(schema, ids);
  // A cursor that cannot be read costs time and no row.
  await test.restart(() => Deno.writeTextFileSync(cursor, before.slice(0, 20)));
  ids.push((await submit(test, runId))[0]);
  await untilMirrored(schema, ids);
});

testing(
  "a service that is killed with SIGKILL again and again loses no row and writes none twice",
  async () => {
    const env = settings();
    const schema = env.SERVICE_MIRROR_MODULE;
    using folder = new TemporaryFolder();
    const ids: number[] = [];
    let runId = "";
    for (let round = 0; round < 3; round++) {
      const server = await startServer({
        ...env,
        SERVICE_API_KEYS: "key",
        SERVICE_DATA_DIR: join(folder.path, "data"),
      });
      const post = async (path: string, body: unknown) => {
        const headers = { "x-api-key": "key", "content-type": "application/json" };
        const answer = await fetch(`${server.url}${path}`, {
          method: "POST",
          headers,
          body: JSON.stringify(body),
        });
        return await answer.json();
      };
      if (round === 0) ({ run_id: runId } = await post("/v1/runs", {}));
      let isKilled = false;
      const sending = Array.from({ length: 4 }, async () => {
        while (!isKilled) {
          const answer = await post(`/v1/runs/${runId}/feedback`, { rating: 1, category: "x" }).catch(() =>
            null
          );
          if (answer !== null) ids.push(answer.feedback_id);
        }
      });
      await until(() => ids.length >= 40 * (round + 1));
      isKilled = round < 2;
      const killed = round < 2 ? server.kill() : null;
      if (killed === null) {
        isKilled = true;
        await Promise.all(sending);
        const last = ids.toSorted((left, right) => left - right);
        // A service that is killed soon has not made the table.
        const written = () => seqs(schema).catch(() => []);
        await until(async () => new Set(await written()).isSupersetOf(new Set(last)));
        await server[Symbol.asyncDispose]();
      } else {
        await killed;
        await Promise.all(sending);
      }
    }
    // Feedback whose answer did not arrive may be there as well, each under a number of its own: the key
    // forbids a second one.
    const rows = await database.rows("feedback", schema.replaceAll('"', '""'));
    assert.equal(new Set(rows.map((row) => row.instance_id)).size, 1);
  },
);

testing("a database that is away at the start is waited for without a word to callers", async () => {
  const { lines, options } = withLines();
  const env = settings();
  const schema = env.SERVICE_MIRROR_MODULE;
  await database.crash();
  const ids: number[] = [];
  try {
    await using test = await startService(env, options);
    const runId = await newRun(test);
    for (let count = 0; count < 3; count++) {
      const [id, isMirrored] = await submit(test, runId);
      ids.push(id);
      assert.equal(isMirrored, false);
    }
    await until(async () => (await look(test)).state === "down");
    await until(async () => await metric(test, "service_mirror_lag_seconds") > 0);
    await database.resume();
    await untilMirrored(schema, ids);
    await until(async () => (await look(test)).lag_ms === 0);
    // The database may still be slow after its start.
    await until("an answer says that it is mirrored", async () => (await submit(test, runId))[1]);
    assert.ok(await isUp(test));
    // While nothing is to be written, a connection that ends is noticed too.
    await database.crash();
    await until(async () => (await look(test)).state === "down");
    await database.resume();
    await until(() => isUp(test));
  } finally {
    await database.resume();
  }
  // One line when it goes away, another one only for another reason, one when it is back.
  const own = lines.flatMap((line) =>
    /mirror: the mirror database is (\w+)(?:.*reason="([^"]+)")?/.exec(line)?.slice(1) ?? []
  );
  const states = own.filter((_, index) => index % 2 === 0);
  assert.deepEqual(states.filter((state, index) => state !== states[index - 1]), [
    "away",
    "there",
    "away",
    "there",
  ]);
  assert.doesNotMatch(lines.join(""), /p@ss|p%40ss/);
});

testing("a database that dies while rows arrive gets all of them, each once", async () => {
  const env = settings();
  const schema = env.SERVICE_MIRROR_MODULE;
  await using test = await startService(env);
  const runId = await newRun(test);
  await until(() => isUp(test));
  const ids: number[] = [];
  let isOver = false;
  const sending = Array.from({ length: 4 }, async () => {
    while (!isOver) ids.push((await submit(test, runId))[0]);
  });
  await until(() => ids.length > 20);
  await database.crash();
  const before = ids.length;
  await until(() => ids.length > before + 50);
  await database.resume();
  const again = ids.length;
  await until(() => ids.length > again + 20);
  isOver = true;
  await Promise.all(sending);
  await untilMirrored(schema, ids.toSorted((left, right) => left - right));
});

testing("a slow database delays no answer, and gets everything", async () => {
  await using wire = new SlowWire(database.port);
  const env = settings({ port: wire.port });
  const schema = env.SERVICE_MIRROR_MODULE;
  // Ten times as slow as it is, so that it does not matter how fast the machine answers.
  const timerSpeed = 0.1;
  await using test = await startService(env, { timerSpeed });
  const runId = await newRun(test);
  await until(() => isUp(test));
  wire.delayMs = 600;
  const ids: number[] = [];
  const tookMs: number[] = [];
  for (let count = 0; count < 10; count++) {
    const startedMs = performance.now();
    const [id, isMirrored] = await submit(test, runId);
    tookMs.push(performance.now() - startedMs);
    ids.push(id);
    assert.equal(isMirrored, false);
  }
  assert.ok(
    tookMs.toSorted((left, right) => left - right)[5]! < LIMITS.mirror.answerWaitMs / 2 / timerSpeed,
    `${tookMs}`,
  );
  await untilMirrored(schema, ids);
});

testing(
  "a database that no longer answers is given up after a while, and gets everything over the next connection",
  async () => {
    await using wire = new SlowWire(database.port);
    const env = settings({ port: wire.port });
    const schema = env.SERVICE_MIRROR_MODULE;
    const { lines, options } = withLines({ timerSpeed: 20 });
    await using test = await startService(env, options);
    const runId = await newRun(test);
    await until(() => isUp(test));
    const ids = [(await submit(test, runId))[0]];
    await untilMirrored(schema, ids);
    wire.isHung = true;
    for (let count = 0; count < 3; count++) ids.push((await submit(test, runId))[0]);
    await until(async () => (await look(test)).state === "down");
    wire.isHung = false;
    await untilMirrored(schema, ids);
    assert.match(lines.join(""), /is away.*reason="not done after 10000 ms"/);
  },
);

testing(
  "a database that refuses to write is asked again until it does: read-only, full, without rights, wrong password",
  async () => {
    const { lines, options } = withLines();
    const user = "strict";
    const env = settings({ user, password: "wrong" });
    const schema = env.SERVICE_MIRROR_MODULE;
    const name = `"${schema.replaceAll('"', '""')}"`;
    const inMirror = (text: string) => database.query(text, "mirror");
    await database.query(`CREATE ROLE ${user} LOGIN PASSWORD 'right'`);
    await using test = await startService(env, options);
    const runId = await newRun(test);
    const ids = [(await submit(test, runId))[0]];
    const reasons = () => lines.filter((line) => line.includes("mirror:")).join("");
    await until(() => /password authentication failed/.test(reasons()));
    await inMirror(`CREATE SCHEMA ${name}`);
    await database.query(`ALTER ROLE ${user} PASSWORD 'wrong'`);
    // From here on it may connect, and not look into the schema.
    await until("no rights", () => /permission denied for schema/.test(reasons()));
    await inMirror(`GRANT USAGE, CREATE ON SCHEMA ${name} TO ${user}`);
    await untilMirrored(schema, ids);
    for (
      const [sickness, why, cure] of [
        [
          `ALTER ROLE ${user} SET default_transaction_read_only = on`,
          /read-only transaction/,
          `ALTER ROLE ${user} RESET ALL`,
        ],
        [
          `CREATE FUNCTION ${name}.no_room() RETURNS trigger LANGUAGE plpgsql AS ` +
          `$$ BEGIN RAISE EXCEPTION 'no space left' USING ERRCODE = 'disk_full'; END $$; ` +
          `CREATE TRIGGER no_room BEFORE INSERT ON ${name}.feedback EXECUTE FUNCTION ${name}.no_room()`,
          /no space left, 53100/,
          `DROP TRIGGER no_room ON ${name}.feedback`,
        ],
      ] as const
    ) {
      await inMirror(sickness);
      await database.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'strict'");
      ids.push((await submit(test, runId))[0]);
      await until(`${why}`, () => why.test(reasons()));
      assert.equal((await look(test)).state, "down");
      await inMirror(cure);
      await untilMirrored(schema, ids);
    }
  },
);

testing(
  "a row that the database refuses for what is in it is left out, and those after it are not",
  async () => {
    const { lines, options } = withLines();
    const env = settings();
    const schema = env.SERVICE_MIRROR_MODULE;
    await using test = await startService(env, options);
    const runId = await newRun(test);
    await until(() => isUp(test));
    const name = `"${schema.replaceAll('"', '""')}"`;
    await database.query(`ALTER TABLE ${name}.feedback ADD CHECK (feedback <> 'secret words')`, "mirror");
    const [first] = await submit(test, runId);
    const [refused, isMirrored] = await submit(test, runId, "secret words");
    assert.equal(isMirrored, false);
    // Longer than an index of PostgreSQL takes, and not to be compressed.
    await database.query(`CREATE INDEX ON ${name}.feedback (feedback)`, "mirror");
    const long = crypto.getRandomValues(new Uint8Array(30_000)).toBase64();
    await submit(test, runId, long);
    const [last] = await submit(test, runId);
    await untilMirrored(schema, [first, last]);
    assert.equal(await metric(test, "service_mirror_rows_refused_total"), 2);
    assert.match(lines.join(""), new RegExp(`refuses a row.*seq=${refused}.*SQLSTATE 23514`));
    assert.doesNotMatch(lines.join(""), /secret words/);
  },
);

testing(
  "after a power cut that cost the timeline its end, new events do not meet the rows of the lost ones",
  async () => {
    const env = settings();
    const schema = env.SERVICE_MIRROR_MODULE;
    await using test = await startService(env);
    const runId = await newRun(test);
    await until(() => isUp(test));
    const ids = [(await submit(test, runId, "kept"))[0]];
    await untilMirrored(schema, ids);
    using copy = new TemporaryFolder();
    const kept = join(copy.path, "kept");
    await test.restart(() => copyFolder(test.dataDir, kept));
    for (let count = 0; count < 3; count++) ids.push((await submit(test, runId, "lost"))[0]);
    await untilMirrored(schema, ids);
    const texts = async () =>
      (await database.query(`SELECT feedback FROM "${schema.replaceAll('"', '""')}".feedback`, "mirror"))
        .map((row) => row.feedback).toSorted();
    // The cursor was lost as well, and then it was not.
    for (const parts of [["timeline", "mirror"], ["timeline"]]) {
      await test.restart(() => {
        for (const part of parts) {
          Deno.removeSync(join(test.dataDir, part), { recursive: true });
          copyFolder(join(kept, part), join(test.dataDir, part));
        }
      });
      await submit(test, runId, `after ${parts}`);
      await until(async () => (await texts()).includes(`after ${parts}`));
    }
    assert.deepEqual(await texts(), [
      "after timeline",
      "after timeline,mirror",
      "kept",
      "lost",
      "lost",
      "lost",
    ]);
  },
);

testing(
  "descriptions of live sessions are copied, other events are not, and another database gets all from the beginning",
  async () => {
    const env = settings();
    const name = env.SERVICE_MIRROR_MODULE.replaceAll('"', '""');
    await using test = await startService(env, REACHES_IN);
    const runId = await newRun(test);
    const extent = { width: 1280, height: 720 };
    const observation = (description: string) => ({
      session_id: "sess-1",
      frame_index: 41,
      pts_ms: 1366,
      coordinate_schema: "service.image.v1" as const,
      coordinates: {
        source_extent: extent,
        requested_region: { x: 0, y: 0, width: 1, height: 1 },
        resolved_region: { x: 0, y: 0, ...extent },
        analysis_extent: extent,
      },
      confidence: 0.58275,
      description,
    });
    const kinds = [
      "vlm",
      "vlm_tiered",
      "clip_vlm",
      "clip_vlm_tiered",
      "loop_detected",
      "state_transition",
    ] as const;
    const { timeline } = test.service;
    const committed = timeline.commit(() => kinds.map((kind) => event(kind, runId, observation(kind))));
    const rows = () => database.rows("descriptions", name).catch(() => []);
    await until(async () => (await rows()).length === 4);
    const [row] = await rows();
    assert.deepEqual({ ...row, instance_id: "" }, {
      instance_id: "",
      seq: String(committed[0]!.seq),
      run_id: runId,
      session_id: "sess-1",
      event_type: "vlm",
      frame_index: "41",
      pts_ms: "1366",
      confidence: 0.58275,
      description: "vlm",
      recorded_at: new Date(committed[0]!.ptsMs),
    });
    assert.deepEqual((await rows()).map(({ description }) => description), kinds.slice(0, 4));
    const next = settings();
    await test.restart(() => {}, next);
    await submit(test, runId);
    const nextName = next.SERVICE_MIRROR_MODULE.replaceAll('"', '""');
    await until(async () => (await database.rows("feedback", nextName).catch(() => [])).length === 1);
    assert.equal((await database.rows("descriptions", nextName)).length, 4);
  },
);

testing("TLS is as the URL asks for it", async () => {
  const check = async (
    sslmode: string,
    isUpAtLast: boolean,
    options: TestOptions,
    hostname = "127.0.0.1",
  ) => {
    const { lines, options: logged } = withLines(options);
    const sessions = () =>
      database.query(
        "SELECT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name = 'service-mirror'",
      );
    await until("the session of the last service has ended", async () => (await sessions()).length === 0);
    await using test = await startService(settings({ sslmode, hostname }), logged);
    await until(
      `${sslmode}: ${isUpAtLast}`,
      async () => (await look(test)).state === (isUpAtLast ? "up" : "down"),
    );
    const [session] = await sessions();
    assert.deepEqual(session?.ssl, isUpAtLast ? sslmode !== "disable" && isTls : undefined, lines.join(""));
  };
  let isTls = true;
  const trusting = { outbound: { roots: [TEST_ROOT] } };
  await check("disable", true, {});
  await check("prefer", true, {});
  await check("require", true, {});
  await check("verify-full", true, trusting);
  await check("verify-full", false, {});
  await check("verify-full", false, trusting, "localhost");
  await database.crash();
  isTls = false;
  await database.resume({ isTls });
  await check("prefer", true, {});
  await check("require", false, {});
  await check("verify-full", false, trusting);
});

function copyFolder(from: string, to: string): void {
  Deno.mkdirSync(to, { recursive: true });
  for (const { name, isDirectory } of Deno.readDirSync(from)) {
    if (isDirectory) copyFolder(join(from, name), join(to, name));
    else Deno.copyFileSync(join(from, name), join(to, name));
  }
}
