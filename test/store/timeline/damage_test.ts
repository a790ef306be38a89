import assert from "node:assert/strict";
import type { Timeline } from "../../../src/store/timeline/timeline.ts";
import { all, Bench, created, event, fill, randomFrom, range, RUN, seqs } from "../../support/timeline.ts";

/** Damages a log of ten events, opens it without its snapshot, and checks what is left. */
async function check(
  what: string,
  change: (bytes: Uint8Array, starts: number[]) => Uint8Array,
  expected: { seqs: number[]; lost: number; nextSeq?: number; damages?: number },
): Promise<void> {
  using bench = new Bench();
  await fill(bench, 10);
  bench.dropSnapshot();
  bench.edit((bytes) => change(bytes, recordStarts(bytes)));
  for (const opening of ["first", "second, after the log grew"]) {
    await using timeline = await bench.open();
    const label = `${what}, ${opening} opening`;
    if (opening === "first") {
      assert.deepEqual(seqs(timeline.read(RUN)), expected.seqs, label);
      assert.equal(bench.damages.length, expected.damages ?? 1, label);
      assert.equal(timeline.stats.damagedRecords, expected.lost, label);
      assert.equal(sum(bench.damages.map((damage) => damage.records)), expected.lost, label);
      assert.ok(bench.damages.length === 0 || bench.lines.some((line) => line.startsWith("error")), label);
      assert.equal(timeline.stats.events, expected.seqs.length, label);
      const [next] = timeline.commit(() => [event("vlm")]);
      assert.equal(next!.seq, expected.nextSeq ?? 11, label);
    } else {
      assert.deepEqual(seqs(timeline.read(RUN)), [...expected.seqs, expected.nextSeq ?? 11], label);
      // A tail that was cut is gone; damage in the middle is found again.
      assert.ok(timeline.stats.damagedRecords <= expected.lost, label);
    }
    await timeline.close();
    bench.dropSnapshot();
  }
}

function recordStarts(bytes: Uint8Array): number[] {
  const starts = [0];
  for (let at = 0; at < bytes.length - 1; at++) if (bytes[at] === 0x0a) starts.push(at + 1);
  return starts;
}

function sum(numbers: number[]): number {
  return numbers.reduce((a, b) => a + b, 0);
}

function joined(...parts: Uint8Array[]): Uint8Array {
  return new Uint8Array(parts.flatMap((part) => [...part]));
}

const without = (...lost: number[]) => range(1, 10).filter((seq) => !lost.includes(seq));

Deno.test("a damaged record is skipped and reported, its neighbours are read", async () => {
  await check("one bit", (bytes, at) => (bytes[at[4]! + 60]! ^= 1, bytes), { seqs: without(5), lost: 1 });
  await check("the first record", (bytes) => (bytes[30]! ^= 4, bytes), { seqs: without(1), lost: 1 });
  await check("two records", (bytes, at) => (bytes[at[4]!]! ^= 1, bytes[at[5]!]! ^= 1, bytes), {
    seqs: without(5, 6),
    lost: 2,
  });
  await check("two far apart", (bytes, at) => (bytes[at[2]!]! ^= 1, bytes[at[7]!]! ^= 1, bytes), {
    seqs: without(3, 8),
    lost: 2,
    damages: 2,
  });
  await check("zeros over three", (bytes, at) => bytes.fill(0, at[3]! + 10, at[5]! + 10), {
    seqs: without(4, 5, 6),
    lost: 3,
  });
  await check(
    "bytes missing inside",
    (bytes, at) => joined(bytes.subarray(0, at[4]! + 40), bytes.subarray(at[4]! + 50)),
    {
      seqs: without(5),
      lost: 1,
    },
  );
  await check(
    "a whole record missing",
    (bytes, at) => joined(bytes.subarray(0, at[4]), bytes.subarray(at[5]!)),
    {
      seqs: without(5),
      lost: 1,
    },
  );
  await check("the length says more than there is", (bytes, at) => (bytes[at[4]! + 11] = 0x39, bytes), {
    seqs: without(5),
    lost: 1,
  });
});

Deno.test("damage between records loses none of them", async () => {
  const garbage = new TextEncoder().encode("garbage 1 00 1 0123abcd 000000009 0 77 1 ");
  const insert = (bytes: Uint8Array, at: number, what: Uint8Array) =>
    joined(bytes.subarray(0, at), what, bytes.subarray(at));
  await check("garbage between", (bytes, at) => insert(bytes, at[4]!, garbage), { seqs: without(), lost: 0 });
  await check("garbage first", (bytes) => insert(bytes, 0, garbage), { seqs: without(), lost: 0 });
  await check("100 kB of zeros", (bytes, at) => insert(bytes, at[4]!, new Uint8Array(100_000)), {
    seqs: without(),
    lost: 0,
  });
  await check(
    "line break lost",
    (bytes, at) => joined(bytes.subarray(0, at[4]! - 1), bytes.subarray(at[4]!)),
    {
      seqs: without(),
      lost: 0,
    },
  );
  await check("line break changed", (bytes, at) => (bytes[at[4]! - 1] = 0x20, bytes), {
    seqs: without(),
    lost: 0,
  });
  await check("a record twice", (bytes, at) => insert(bytes, at[4]!, bytes.subarray(at[3]!, at[4])), {
    seqs: without(),
    lost: 0,
  });
  await check("blank lines", (bytes, at) => insert(bytes, at[4]!, new Uint8Array([10, 10])), {
    seqs: without(),
    lost: 0,
  });
});

Deno.test("the end of the log: torn writes are cut, whole records that were damaged later keep their number", async () => {
  const cut = (bytes: Uint8Array) => bytes.subarray(0, -5);
  await check("torn", cut, { seqs: without(10), lost: 0, nextSeq: 10, damages: 0 });
  await check("one bit", (bytes, at) => (bytes[at[9]! + 60]! ^= 1, bytes), { seqs: without(10), lost: 1 });
  await check("two records", (bytes, at) => (bytes[at[8]!]! ^= 1, bytes[at[9]!]! ^= 1, bytes), {
    seqs: without(9, 10),
    lost: 2,
  });
  await check("zeros at the end", (bytes) => joined(bytes, new Uint8Array(5000)), {
    seqs: without(),
    lost: 0,
  });
  await check("zeros instead of the last one", (bytes, at) => bytes.fill(0, at[9]), {
    seqs: without(10),
    lost: 0,
    nextSeq: 10,
  });
  await check("only the line break lost", (bytes) => bytes.subarray(0, -1), {
    seqs: without(),
    lost: 0,
    damages: 0,
  });
  await check("the line break changed", (bytes) => (bytes[bytes.length - 1] = 0x20, bytes), {
    seqs: without(),
    lost: 0,
  });
  await check(
    "megabytes of garbage are not cut",
    (bytes) => joined(bytes, new Uint8Array(1_100_000).fill(7)),
    {
      seqs: without(),
      lost: 0,
    },
  );
  await check("nothing left", () => new Uint8Array(), { seqs: [], lost: 0, nextSeq: 1, damages: 0 });
  await check("all zeros", (bytes) => bytes.fill(0), { seqs: [], lost: 0, nextSeq: 1 });
});

Deno.test("a write that was torn at any byte loses only its own event, and no sequence number", async () => {
  using bench = new Bench();
  await fill(bench, 3);
  bench.dropSnapshot();
  const whole = Deno.readFileSync(bench.path(bench.segments()[0]!));
  const last = recordStarts(whole)[2]!;
  for (let size = last; size <= whole.length; size++) {
    Deno.writeFileSync(bench.path(bench.segments()[0]!), whole.subarray(0, size));
    await using timeline = await bench.open();
    // A record that lacks only its line break is whole.
    const kept = size >= whole.length - 1 ? 3 : 2;
    assert.deepEqual(seqs(timeline.read(RUN)), range(1, kept), `torn at ${size - last}`);
    assert.deepEqual(bench.damages, [], `torn at ${size - last}`);
    assert.equal(timeline.commit(() => [event("vlm")])[0]!.seq, kept + 1);
    await timeline.close();
    bench.dropSnapshot();
    await using again = await bench.open();
    assert.deepEqual(seqs(again.read(RUN)), range(1, kept + 1), `torn at ${size - last}, opened again`);
    assert.deepEqual(bench.damages, []);
    await again.close();
    bench.dropSnapshot();
  }
});

Deno.test("nothing of a commit of several events that was torn at any byte is read", async () => {
  using bench = new Bench();
  {
    await using timeline = await bench.open();
    timeline.commit(() => [created()]);
    timeline.commit(() => [event("marker_emitted"), event("marker_emitted"), event("analysis_generated")]);
  }
  bench.dropSnapshot();
  const whole = Deno.readFileSync(bench.path(bench.segments()[0]!));
  const batch = recordStarts(whole)[1]!;
  for (let size = batch; size < whole.length - 1; size++) {
    Deno.writeFileSync(bench.path(bench.segments()[0]!), whole.subarray(0, size));
    await using timeline = await bench.open();
    assert.deepEqual(seqs(timeline.read(RUN)), [1], `torn at ${size - batch}`);
    assert.equal(timeline.view.run(RUN)!.state, "pending");
    assert.equal(timeline.view.lastSeq, 1);
    assert.deepEqual(bench.damages, []);
    assert.equal(timeline.commit(() => [event("vlm")])[0]!.seq, 2);
    await timeline.close();
    bench.dropSnapshot();
  }
});

Deno.test("damage just before a torn write is distinguished from it", async () => {
  const checkEnd = async (
    what: string,
    change: (bytes: Uint8Array, starts: number[]) => Uint8Array,
    expected: { seqs: number[]; lost: number; nextSeq: number },
  ) => {
    using bench = new Bench();
    {
      await using timeline = await bench.open();
      timeline.commit(() => [created(), event("vlm")]);
      timeline.commit(() => [event("vlm"), event("vlm"), event("vlm")]);
    }
    bench.dropSnapshot();
    bench.edit((bytes) => change(bytes, recordStarts(bytes)));
    await using timeline = await bench.open();
    assert.deepEqual(seqs(timeline.read(RUN)), expected.seqs, what);
    assert.equal(timeline.stats.damagedRecords, expected.lost, what);
    assert.equal(timeline.commit(() => [event("vlm")])[0]!.seq, expected.nextSeq, what);
  };
  const flip = (bytes: Uint8Array, at: number) => (bytes[at + 60]! ^= 1, bytes);
  await checkEnd(
    "the end of a commit, and the commit after it torn",
    (bytes, at) => flip(bytes, at[1]!).subarray(0, -5),
    {
      seqs: [1],
      lost: 1,
      nextSeq: 3,
    },
  );
  await checkEnd(
    "a line, and the rest of its commit missing",
    (bytes, at) => flip(bytes, at[3]!).subarray(0, at[4]),
    {
      seqs: [1, 2],
      lost: 0,
      nextSeq: 3,
    },
  );
  await checkEnd(
    "a line, and the one after it torn",
    (bytes, at) => flip(bytes, at[1]!).subarray(0, at[2]! + 50),
    {
      seqs: [1],
      lost: 1,
      nextSeq: 3,
    },
  );
  await checkEnd("the last two lines of a commit", (bytes, at) => flip(flip(bytes, at[3]!), at[4]!), {
    seqs: [1, 2, 3],
    lost: 2,
    nextSeq: 6,
  });
});

Deno.test("a long unknown tail is not cut", async () => {
  using bench = new Bench();
  await fill(bench, 3);
  bench.dropSnapshot();
  bench.edit((bytes) => joined(bytes, new Uint8Array(1_100_000).fill(7)));
  const before = Deno.readFileSync(bench.path(bench.segments()[0]!));
  await using timeline = await bench.open();
  timeline.commit(() => [event("vlm")]);
  assert.deepEqual(Deno.readFileSync(bench.path(bench.segments()[0]!)), before);
  assert.deepEqual(seqs(timeline.read(RUN)), range(1, 4));
});

Deno.test("a wrong bit in a whole commit loses one event of it", async () => {
  using bench = new Bench();
  {
    await using timeline = await bench.open();
    timeline.commit(() => [created(), event("vlm"), event("vlm"), event("vlm")]);
    timeline.commit(() => [event("vlm"), event("vlm"), event("vlm")]);
  }
  bench.dropSnapshot();
  const whole = Deno.readFileSync(bench.path(bench.segments()[0]!));
  for (const [number, start] of recordStarts(whole).entries()) {
    const bytes = whole.slice();
    bytes[start + 70]! ^= 2;
    Deno.writeFileSync(bench.path(bench.segments()[0]!), bytes);
    await using timeline = await bench.open();
    assert.deepEqual(seqs(timeline.read(RUN)), range(1, 7).filter((seq) => seq !== number + 1));
    assert.equal(timeline.stats.damagedRecords, 1);
    await timeline.close();
    bench.dropSnapshot();
  }
});

Deno.test("whatever byte of a middle record is changed, at most that record is lost, and it is reported", async () => {
  using bench = new Bench();
  await fill(bench, 5);
  bench.dropSnapshot();
  const whole = Deno.readFileSync(bench.path(bench.segments()[0]!));
  const starts = recordStarts(whole);
  const random = randomFrom(7);
  for (let at = starts[2]!; at < starts[3]!; at++) {
    const bytes = whole.slice();
    bytes[at] = (bytes[at]! + 1 + random(255)) & 255;
    Deno.writeFileSync(bench.path(bench.segments()[0]!), bytes);
    await using timeline = await bench.open();
    const isLineBreak = at === starts[3]! - 1;
    assert.deepEqual(
      seqs(timeline.read(RUN)),
      isLineBreak ? range(1, 5) : [1, 2, 4, 5],
      `byte ${at - starts[2]!}`,
    );
    assert.equal(bench.damages.length, 1, `byte ${at - starts[2]!}`);
    assert.equal(timeline.stats.damagedRecords, isLineBreak ? 0 : 1);
    await timeline.close();
    bench.dropSnapshot();
  }
});

Deno.test("damaged bytes are copied to a file, and counted once over several starts", async () => {
  using bench = new Bench();
  await fill(bench, 5);
  const name = bench.segments()[0]!;
  const whole = Deno.readFileSync(bench.path(name));
  const [, second, third] = recordStarts(whole);
  bench.edit((bytes) => (bytes[second! + 40]! ^= 8, bytes));
  bench.dropSnapshot();
  for (let opening = 0; opening < 3; opening++) {
    await using timeline = await bench.open();
    assert.equal(timeline.stats.damagedRecords, 1);
    // From the second start on the snapshot has the count, and the damage is not found again.
    assert.equal(bench.damages.length, opening === 0 ? 1 : 0);
  }
  const copy = Deno.readFileSync(bench.path(`damaged/${name}.${second}.bytes`));
  assert.deepEqual(copy, Deno.readFileSync(bench.path(name)).subarray(second, third));
});

Deno.test("a record that is damaged while the service runs is skipped and reported once", async () => {
  const ways: [string, (bytes: Uint8Array, start: number) => number][] = [
    ["a bit in the payload", (bytes, start) => bytes[start + 50]! ^= 1],
    ["a length that covers its neighbours", (bytes, start) => bytes[start + 17] = 0x39],
    ["a length beyond the file", (bytes, start) => bytes[start + 11] = 0x39],
    ["no header", (bytes, start) => bytes[start] = 0],
  ];
  for (const [what, damage] of ways) {
    using bench = new Bench();
    await fill(bench, 20);
    await using timeline = await bench.open();
    bench.edit((bytes) => (damage(bytes, recordStarts(bytes)[4]!), bytes));
    for (let reading = 0; reading < 2; reading++) {
      assert.deepEqual(seqs(timeline.read(RUN)), range(1, 20).filter((seq) => seq !== 5), what);
      assert.equal(timeline.readOne(5), undefined);
      assert.equal(timeline.readOne(6)?.seq, 6);
      assert.equal(bench.damages.length, 1);
      assert.equal(timeline.stats.damagedRecords, 1);
    }
  }
});

Deno.test("a segment that is missing, renamed, emptied or unreadable is reported, and the rest is read", async () => {
  const checkSegments = async (
    what: string,
    change: (bench: Bench, names: string[]) => void,
    expect: (timeline: Timeline, bench: Bench, before: number[][]) => void,
  ) => {
    using bench = new Bench();
    await fill(bench, 60, { segmentBytes: 2000 });
    const names = bench.segments();
    assert.ok(names.length >= 4, what);
    const before = names.map((_, at) => {
      const first = Number(names[at]!.slice(0, 20));
      const next = at + 1 < names.length ? Number(names[at + 1]!.slice(0, 20)) : 61;
      return range(first, next - 1);
    });
    for (const snapshot of ["with", "without"]) {
      using copy = bench.crashCopy();
      if (snapshot === "without") copy.dropSnapshot();
      change(copy, names);
      await using timeline = await copy.open();
      expect(timeline, copy, before);
      assert.equal(
        timeline.commit(() => [event("vlm")])[0]!.seq >= 61,
        true,
        `${what}, ${snapshot} snapshot`,
      );
      await timeline.close();
      copy.dropSnapshot();
      await using again = await copy.open();
      assert.deepEqual(seqs(again.read(RUN)).at(-1), timeline.view.lastSeq);
    }
  };
  const servesAllBut = (number: number) => (timeline: Timeline, bench: Bench, before: number[][]) => {
    assert.deepEqual(seqs(timeline.read(RUN)), before.filter((_, at) => at !== number).flat());
    assert.ok(bench.damages.length > 0);
    assert.equal(timeline.stats.damagedRecords, before[number]!.length);
  };
  await checkSegments("missing", (bench, names) => Deno.removeSync(bench.path(names[1]!)), servesAllBut(1));
  await checkSegments(
    "first one missing",
    (bench, names) => Deno.removeSync(bench.path(names[0]!)),
    servesAllBut(0),
  );
  await checkSegments("emptied", (bench, names) => Deno.truncateSync(bench.path(names[1]!)), servesAllBut(1));
  await checkSegments("renamed away", (bench, names) => {
    Deno.renameSync(bench.path(names[1]!), bench.path("old.bak"));
  }, servesAllBut(1));
  await checkSegments("a folder in its place", (bench, names) => {
    Deno.removeSync(bench.path(names[1]!));
    Deno.mkdirSync(bench.path(names[1]!));
  }, servesAllBut(1));
  await checkSegments("renamed", (bench, names) => {
    Deno.renameSync(bench.path(names[1]!), bench.path("x.wal"));
  }, (timeline, bench) => {
    assert.deepEqual(seqs(timeline.read(RUN)), range(1, 60));
    assert.ok(bench.lines.some((line) => line.includes("does not have its name")));
  });
  await checkSegments("copied", (bench, names) => {
    Deno.copyFileSync(bench.path(names[1]!), bench.path("copy.wal"));
  }, (timeline, bench) => {
    assert.deepEqual(seqs(timeline.read(RUN)), range(1, 60));
    assert.equal(timeline.stats.damagedRecords, 0);
    assert.ok(bench.damages.length > 0);
  });
});

Deno.test("the last segment unreadable: sequence numbers that it may contain are not used again", async () => {
  using bench = new Bench();
  await fill(bench, 60, { segmentBytes: 2000 });
  bench.dropSnapshot();
  const last = bench.segments().at(-1)!;
  Deno.removeSync(bench.path(last));
  Deno.mkdirSync(bench.path(last));
  await using timeline = await bench.open();
  assert.ok(timeline.commit(() => [event("vlm")])[0]!.seq > Number(last.slice(0, 20)));
  assert.equal(all(timeline.read(RUN)).at(-1)!.kind, "vlm");
});

Deno.test("a record that ends at the end of the scan window is whole", async () => {
  using bench = new Bench();
  {
    await using timeline = await bench.open();
    // 17 records of 61,681 bytes are 1 MiB and one byte: the last line break is the first byte after the
    // window.
    for (let count = 0; count < 40; count++) {
      const before = timeline.stats.bytes;
      const otherBytes = 21 + `0 ${count + 1} ${RUN} stream-0 ${bench.nowMs} vlm ""\n`.length;
      timeline.commit(() => [event("vlm", "x".repeat(61_681 - otherBytes))]);
      assert.equal(timeline.stats.bytes - before, 61_681);
    }
  }
  bench.dropSnapshot();
  await using timeline = await bench.open();
  assert.deepEqual(bench.damages, []);
  assert.deepEqual(seqs(timeline.read(RUN)), range(1, 40));
});
