import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { Refusal } from "../../../src/contract/refusal.ts";
import { PreparedPayload } from "../../../src/model/runs/run.ts";
import { RecordBatch } from "../../../src/store/timeline/record.ts";
import { all, Bench, created, event, prepared, range, RUN, seqs } from "../../support/timeline.ts";

const OTHER = "run-00000000000000000000000000000002";

Deno.test("a payload comes back as the text that was written, before and after a restart", async () => {
  const payloads: [unknown, string][] = [
    [
      { text: "tab\t line\n return\r back\\slash \\t \\n" },
      String.raw`{"text":"tab\t line\n return\r back\\slash \\t \\n"}`,
    ],
    [{ text: "żółć 東京 😀 \u2028" }, '{"text":"żółć 東京 😀 \u2028"}'],
    [{ text: "\ud800 alone \udfff" }, String.raw`{"text":"\ud800 alone \udfff"}`],
    [prepared('{"hash":18446744073709551615,"text":"é"}'), '{"hash":18446744073709551615,"text":"é"}'],
    [{ empty: "", nothing: null, no: undefined }, '{"empty":"","nothing":null}'],
    [{}, "{}"],
    [null, "null"],
    ["text", '"text"'],
    [{ text: "x".repeat(300_000) + "é" }, JSON.stringify({ text: "x".repeat(300_000) + "é" })],
    [
      { record: "1 00000000 000000010 0 9\trun\tstream" },
      String.raw`{"record":"1 00000000 000000010 0 9\trun\tstream"}`,
    ],
  ];
  using bench = new Bench();
  for (const opening of ["fresh", "from the snapshot", "from the log"]) {
    if (opening === "from the log") bench.dropSnapshot();
    await using timeline = await bench.open();
    if (opening === "fresh") {
      for (const [payload] of payloads) timeline.commit(() => [event("vlm", payload)]);
    }
    assert.deepEqual(
      all(timeline.read(RUN)).map((stored) => stored.payload),
      payloads.map(([, text]) => text),
      opening,
    );
    assert.deepEqual(bench.damages, []);
  }
});

Deno.test("columns with tabs, line breaks and backslashes come back as they were", async () => {
  using bench = new Bench();
  const columns = ["stream-0", "a\tb", "a\nb", "a\\b", "\\t", "\\\\n", "", "żółć 😀", "1 0 0 0"];
  for (const opening of ["fresh", "again"]) {
    await using timeline = await bench.open();
    if (opening === "fresh") {
      for (const text of columns) {
        timeline.commit(
          () => [{ kind: `trigger.${text}`, runId: `run-${text}`, streamId: text, payload: {} }],
        );
      }
    } else bench.dropSnapshot();
    columns.forEach((text, at) => {
      const [stored] = all(timeline.read(`run-${text}`));
      assert.deepEqual(stored, {
        seq: at + 1,
        runId: `run-${text}`,
        streamId: text,
        ptsMs: bench.nowMs,
        kind: `trigger.${text}`,
        payload: "{}",
      });
    });
  }
});

Deno.test("sequence numbers have no gaps over all runs and continue after a restart", async () => {
  using bench = new Bench();
  for (const first of [1, 4, 7]) {
    await using timeline = await bench.open();
    assert.equal(timeline.view.lastSeq, first - 1);
    const one = timeline.commit(() => [event("vlm")]);
    const two = timeline.commit(() => [event("vlm", {}, OTHER), event("vlm")]);
    assert.deepEqual([...one, ...two].map((committed) => committed.seq), range(first, first + 2));
  }
  await using timeline = await bench.open();
  assert.deepEqual(seqs(timeline.read(RUN)), [1, 3, 4, 6, 7, 9]);
  assert.deepEqual(seqs(timeline.read(OTHER)), [2, 5, 8]);
  assert.deepEqual(seqs(timeline.readAll({})), range(1, 9));
});

Deno.test("the time of an event is the clock at the commit", async () => {
  using bench = new Bench();
  await using timeline = await bench.open();
  bench.nowMs = 1234.9;
  assert.deepEqual(timeline.commit(() => [created()]), [{
    seq: 1,
    ptsMs: 1234,
    kind: "run_created",
    runId: RUN,
  }]);
  bench.nowMs = 1000;
  timeline.commit(() => [event("vlm")]);
  assert.equal(timeline.view.run(RUN)!.lastActivityMs, 1234);
  assert.deepEqual(all(timeline.read(RUN)).map((stored) => stored.ptsMs), [1234, 1000]);
});

Deno.test("a query limits by cursor, kind and count, also over many segments", async () => {
  using bench = new Bench();
  await using timeline = await bench.open({ segmentBytes: 4096 });
  // Run 1 has the odd numbers; every tenth event is a keyframe_stored.
  for (let seq = 1; seq <= 2000; seq++) {
    timeline.commit(
      () => [event(seq % 10 === 5 ? "keyframe_stored" : "vlm", { seq }, seq % 2 ? RUN : OTHER)],
    );
  }
  assert.ok(timeline.stats.segments > 20);
  const odd = range(1, 1000).map((at) => at * 2 - 1);
  const check = (query: Parameters<typeof timeline.read>[1], expected: number[]) =>
    assert.deepEqual(seqs(timeline.read(RUN, query)), expected, JSON.stringify(query));
  check({}, odd);
  check({ fromSeq: 0 }, odd);
  check({ fromSeq: 1999 }, [1999]);
  check({ fromSeq: 2000 }, []);
  check({ fromSeq: 1e12 }, []);
  check({ toSeq: 0 }, []);
  check({ fromSeq: 5, toSeq: 5 }, [5]);
  check({ fromSeq: 6, toSeq: 6 }, []);
  check({ fromSeq: 9, toSeq: 4 }, []);
  check({ limit: 0 }, []);
  check({ limit: 3 }, [1, 3, 5]);
  check({ fromSeq: 1024, limit: 2 }, [1025, 1027]);
  check({ kinds: new Set(["keyframe_stored"]) }, odd.filter((seq) => seq % 10 === 5));
  check({ kinds: new Set(["keyframe_stored"]), fromSeq: 16, limit: 2 }, [25, 35]);
  check({ kinds: (kind) => kind.startsWith("key"), fromSeq: 1900, toSeq: 1940 }, [1905, 1915, 1925, 1935]);
  check({ kinds: new Set(["never"]) }, []);
  check({ kinds: new Set() }, []);
  for (const fromSeq of range(500, 530)) {
    check(
      { fromSeq, toSeq: 540 },
      odd.filter((seq) => seq >= fromSeq && seq <= 540),
    );
  }
  assert.deepEqual(seqs(timeline.read("run-unknown")), []);
  assert.deepEqual(
    seqs(timeline.readAll({ kinds: new Set(["keyframe_stored"]), fromSeq: 100, limit: 3 })),
    [105, 115, 125],
  );
});

Deno.test("batches are small, and a reading ends where the log ended when it started", async () => {
  using bench = new Bench();
  await using timeline = await bench.open();
  for (let seq = 1; seq <= 600; seq++) timeline.commit(() => [event("vlm", { seq })]);
  const big = { text: "x".repeat(700_000) };
  timeline.commit(() => [event("frames_decoded", big), event("frames_decoded", big)]);
  const sizes: number[] = [];
  for (const batch of timeline.read(RUN)) {
    sizes.push(batch.length);
    timeline.commit(() => [event("vlm", { late: true })]);
  }
  assert.deepEqual(sizes, [256, 256, 89, 1]);
});

Deno.test("events are read by their numbers in batches, near and far, short and long", async () => {
  using bench = new Bench();
  await using timeline = await bench.open();
  for (let seq = 1; seq <= 600; seq++) timeline.commit(() => [event("vlm", { seq })]);
  const big = { text: "x".repeat(700_000) };
  timeline.commit(() => [event("frames_decoded", big), event("frames_decoded", big)]);
  const wanted = [1, 2, 3, ...Array.from({ length: 290 }, (_, index) => 11 + 2 * index), 600, 601, 602];
  const batches = [...timeline.readNumbers(RUN, wanted)];
  assert.deepEqual(batches.flat().map(({ seq }) => seq), wanted);
  assert.deepEqual(batches.map(({ length }) => length), [256, 39, 1]);
  assert.equal(batches[0]![3]!.payload, '{"seq":11}');
  assert.equal(batches.at(-1)![0]!.payload, JSON.stringify(big));
  assert.deepEqual([...timeline.readNumbers(RUN, [])], []);
});

Deno.test("one event is read by its number, and its payload as bytes", async () => {
  using bench = new Bench();
  await using timeline = await bench.open();
  timeline.commit(() => [created(), event("vlm", { text: "é" })]);
  assert.equal(timeline.readOne(2)?.payload, '{"text":"é"}');
  assert.equal(new TextDecoder().decode(timeline.readPayload(2)), '{"text":"é"}');
  for (const seq of [0, -1, 3, 65_537, 0xffff_ffff, 0x1_0000_0002, 1.5, NaN]) {
    assert.equal(timeline.readOne(seq), undefined, String(seq));
    assert.equal(timeline.readPayload(seq), undefined, String(seq));
  }
});

Deno.test("one payload is read in pieces, and none of it where it is damaged or missing", async () => {
  using bench = new Bench();
  const text = `${"é€😀x".repeat(70_000)}`;
  await using timeline = await bench.open();
  timeline.commit(() => [created(), event("vlm", { text: "é" }), event("frames_decoded", { text })]);
  timeline.commit(() => [event("vlm", { after: true })]);
  const read = async (seq: number) => {
    const pieces = [];
    for await (const piece of timeline.readPieces(seq)) pieces.push(piece);
    return pieces;
  };
  assert.deepEqual(await read(2), ['{"text":"é"}']);
  const pieces = await read(3);
  assert.ok(pieces.length > 2 && pieces.every((piece) => piece.length <= 256 * 1024));
  assert.equal(pieces.join(""), JSON.stringify({ text }));
  for (const seq of [0, -1, 5, NaN]) assert.deepEqual(await read(seq), [], String(seq));
  bench.edit((bytes) => bytes.with(600_000, bytes[600_000]! ^ 1));
  assert.deepEqual(await read(3), []);
  assert.deepEqual(await read(4), ['{"after":true}']);
});

Deno.test("a payload of 120 MB is written and read back", async () => {
  using bench = new Bench();
  const json = new Uint8Array(120_000_000).fill(0x61);
  json[0] = json[json.length - 1] = 0x22;
  for (const opening of ["fresh", "from the log"]) {
    await using timeline = await bench.open();
    if (opening === "fresh") timeline.commit(() => [created(), event("frames_decoded", prepared("1"))]);
    if (opening === "fresh") {
      timeline.commit(
        () => [event("frames_decoded", new PreparedPayload(json)), event("vlm", { after: true })],
      );
    }
    assert.equal(Buffer.compare(timeline.readPayload(3)!, json), 0);
    assert.equal(timeline.readOne(4)?.payload, '{"after":true}');
    assert.equal(all(timeline.read(RUN))[2]?.payload.length, json.length);
    assert.equal(timeline.view.run(RUN)!.latestFramesDecodedSeq, 3);
    await timeline.close();
    bench.dropSnapshot();
  }
});

Deno.test("a payload in pieces is one record, whose commit neither looks through the pieces nor copies them", async () => {
  class Piece extends Uint8Array<ArrayBuffer> {
    static looks = 0;
    override includes(value: number): boolean {
      Piece.looks += 1;
      return super.includes(value);
    }
  }
  const texts = ['{"signals":[', "1,".repeat(300_000), '"é"', "]}"];
  const payload = new PreparedPayload();
  for (const text of texts) payload.add(new Piece(new TextEncoder().encode(text).buffer));
  const looks = Piece.looks;
  assert.ok(looks > 0);

  const batch = new RecordBatch();
  batch.add("0 1\trun\tstream\t0\tframes_decoded\t", payload);
  batch.finish();
  assert.deepEqual(
    [...payload.pieces].map((piece) => [...batch.pieces()].includes(piece)),
    texts.map(() => true),
  );

  using bench = new Bench();
  await using timeline = await bench.open();
  timeline.commit(() => [created(), event("frames_decoded", payload), event("vlm", { after: true })]);
  assert.equal(timeline.readOne(2)?.payload, texts.join(""));
  assert.equal(timeline.readOne(3)?.payload, '{"after":true}');
  assert.equal(Piece.looks, looks);
  const broken = new PreparedPayload(...payload.pieces, new TextEncoder().encode("\n"));
  assert.throws(() => timeline.commit(() => [event("frames_decoded", broken)]), /not on one line/);
});

Deno.test("an event that is longer than a batch comes alone and in pieces, the last of the log too", async () => {
  using bench = new Bench();
  const text = "é€😀x".repeat(300_000);
  for (const opening of ["fresh", "from the log"]) {
    await using timeline = await bench.open();
    if (opening === "fresh") {
      timeline.commit(() => [created(), event("frames_decoded", { text }), event("vlm", { after: true })]);
      timeline.commit(() => [event("frames_decoded", { text, last: true })]);
    }
    const seen = [];
    for await (const batch of timeline.readInPieces(RUN, { fromSeq: 2 })) {
      for (const stored of batch) {
        if ("payload" in stored) seen.push([stored.seq, stored.kind, stored.payload]);
        else {
          const pieces = await Array.fromAsync(stored.pieces);
          assert.ok(pieces.length > 4 && pieces.every((piece) => piece.length <= 256 * 1024));
          seen.push([stored.seq, stored.kind, "in pieces", pieces.join("")]);
        }
      }
    }
    assert.deepEqual(seen, [
      [2, "frames_decoded", "in pieces", JSON.stringify({ text })],
      [3, "vlm", '{"after":true}'],
      [4, "frames_decoded", "in pieces", JSON.stringify({ text, last: true })],
    ]);
    const limited = await Array.fromAsync(timeline.readInPieces(RUN, { fromSeq: 2, limit: 1 }));
    assert.deepEqual(limited.flat().map(({ seq }) => seq), [2]);
    await timeline.close();
    bench.dropSnapshot();
  }
});

Deno.test("a decision that throws or returns no events writes nothing", async () => {
  using bench = new Bench();
  await using timeline = await bench.open();
  assert.throws(() =>
    timeline.commit(() => {
      throw new Refusal("conflict", "no");
    }), Refusal);
  assert.deepEqual(timeline.commit(() => []), []);
  assert.throws(() => timeline.commit(() => (timeline.commit(() => []), [])), /inside the decision/);
  assert.equal(timeline.stats.bytes, 0);
  assert.equal(timeline.commit(() => [created()])[0]!.seq, 1);
});

Deno.test("a payload that is not one line of JSON throws, and nothing of its commit is written", async () => {
  using bench = new Bench();
  await using timeline = await bench.open();
  const bad = [undefined, () => 1, Symbol("s"), 10n, { n: 10n }, prepared("{\n}"), prepared("{\t}")];
  for (const payload of bad) {
    assert.throws(() => timeline.commit(() => [created(), { kind: "vlm", runId: RUN, payload }]), TypeError);
  }
  assert.equal(timeline.view.lastSeq, 0);
  assert.equal(timeline.view.run(RUN), undefined);
  assert.equal(timeline.commit(() => [created()])[0]!.seq, 1);
});

Deno.test("nothing follows run_deleted in a run", async () => {
  using bench = new Bench();
  for (const opening of ["fresh", "again"]) {
    await using timeline = await bench.open();
    if (opening === "fresh") {
      timeline.commit(() => [created(), created(OTHER)]);
      assert.throws(() => timeline.commit(() => [event("run_deleted"), event("vlm")]), { code: "not_found" });
      assert.equal(timeline.view.run(RUN)!.deleted, false);
      timeline.commit(() => [event("vlm"), event("run_deleted")]);
    }
    for (const kind of ["vlm", "run_deleted", "webhook_deleted"]) {
      assert.throws(() => timeline.commit(() => [event("vlm", {}, OTHER), event(kind)]), {
        code: "not_found",
      }, kind);
    }
    assert.equal(timeline.view.lastSeq, 4);
    assert.equal(timeline.view.run(RUN)!.deleted, true);
    assert.equal(timeline.view.run(RUN)!.principalKey, "api-key:a");
    assert.deepEqual([...timeline.view.runsOf("api-key:a")].map((run) => run.runId), [OTHER]);
    assert.deepEqual(seqs(timeline.read(RUN)), [1, 3, 4]);
  }
});

Deno.test("of many decisions at the same time exactly one wins", async () => {
  using bench = new Bench();
  await using timeline = await bench.open({ sync: "group" });
  timeline.commit(() => [created()]);
  const answers = await Promise.all(
    range(1, 50).map(async (caller) => {
      await Promise.resolve();
      const committed = timeline.commit((view) =>
        view.run(RUN)!.deleted ? [] : [event("run_deleted", { caller })]
      );
      await timeline.synced();
      return committed.length;
    }),
  );
  assert.equal(answers.filter((count) => count === 1).length, 1);
  assert.equal(timeline.view.lastSeq, 2);
});

Deno.test("a closed timeline takes no commits, and may be closed twice", async () => {
  using bench = new Bench();
  const timeline = await bench.open();
  const subscription = timeline.subscribe();
  const changed = subscription.changed();
  await timeline.close();
  await timeline.close();
  assert.equal(await changed, false);
  assert.throws(() => timeline.commit(() => [created()]), /closed/);
});

Deno.test("beyond the limit of runs a new one is refused before anything is written; those that are there go on", async () => {
  using bench = new Bench();
  for (const opening of ["fresh", "again"]) {
    await using timeline = await bench.open({ runsMax: 2 });
    if (opening === "fresh") timeline.commit(() => [created(), created(OTHER)]);
    const { lastSeq } = timeline.view;
    const third = "run-00000000000000000000000000000003";
    assert.throws(
      () => timeline.commit(() => [created(third), event("keepalive_refreshed", {}, third)]),
      (error) =>
        error instanceof Refusal && error.kind === "storage_unavailable" &&
        error.message === "Cannot create a run: the log has 2 runs, and takes no more than 2",
    );
    assert.equal(timeline.view.lastSeq, lastSeq);
    assert.equal(timeline.commit(() => [event("keepalive_refreshed", {}, OTHER)]).length, 1);
  }
});

Deno.test("files are readable by the owner only", async () => {
  using bench = new Bench();
  await using timeline = await bench.open();
  timeline.commit(() => [created()]);
  await timeline.close();
  assert.equal(Deno.statSync(bench.directory).mode! & 0o777, 0o700);
  for (const name of ["snapshot", bench.segments()[0]!]) {
    assert.equal(Deno.statSync(bench.path(name)).mode! & 0o777, 0o600, name);
  }
});
