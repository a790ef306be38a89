/** Memory is reserved by the size of the pictures before a program starts, and the kernel bounds the program
 * by the same number.
 */

import { deepEqual, equal, match, ok, rejects } from "node:assert/strict";
import { Refusal, RefusalForNow } from "../../src/contract/refusal.ts";
import { bytesPerPixel, type MediaWork, memoryBytes } from "../../src/media/media_memory.ts";
import { MemoryBudget } from "../../src/media/memory_budget.ts";
import { toolLimits } from "../../src/media/tool_limits.ts";
import { ManualClock } from "../support/manual_clock.ts";
import { NEVER } from "../support/media.ts";

const GIB = 2 ** 30;

function film(width: number, height: number, pixelFormat = "yuv420p") {
  return { width, height, pixelFormat, sizeBytes: 10_000_000 };
}

Deno.test("memory grows with pictures, depth and processors, and never beyond that of the largest picture", () => {
  const of = (size: ReturnType<typeof film>, processors = 2) => memoryBytes("decode", size, processors);
  const rising = [
    of(film(1920, 1080)),
    of(film(3840, 2160)),
    of(film(7680, 4320)),
    of(film(7680, 4320), 16),
    of(film(7680, 4320, "yuv420p10le"), 16),
    of(film(7680, 4320, "yuv444p12le"), 16),
  ];
  deepEqual(rising.toSorted((one, other) => one - other), rising);
  equal(of(film(16, 16)), of(film(1280, 720)), "a source may become larger on the way");
  ok(of(film(65_536, 65_536)) <= 4.1 * of(film(8192, 4320)), "a size that is not true buys no more");
  ok(of({ ...film(16, 16), sizeBytes: 2 ** 50 }) < 2 * GIB);
  ok(of(film(7680, 4320, "no such format"), 2) > of(film(7680, 4320, "yuv420p10le"), 2));
});

Deno.test("the bytes of a pixel follow from the name of its format", () => {
  const expected = {
    ...{ yuv420p: 1.5, nv12: 1.5, yuvj422p: 2, yuv444p: 3, rgb24: 3, bgra: 4, yuva420p: 3 },
    ...{ yuv420p10le: 3, p010le: 3, yuv444p16be: 6, rgb48le: 6, rgba64be: 8, gbrpf32le: 12, other: 8 },
  };
  for (const [format, bytes] of Object.entries(expected)) equal(bytesPerPixel(format), bytes, format);
});

Deno.test("the kernel's limits have the reserved memory in them, but for drivers of hardware", () => {
  const given = { prlimit: "/usr/bin/prlimit", cpuSeconds: 1 };
  for (const work of ["probe", "decode", "window", "live", "jpeg"] satisfies MediaWork[]) {
    const size = film(3840, 2160);
    const { memory } = toolLimits(work, { ...given, size });
    const reserved = memoryBytes(work, size, navigator.hardwareConcurrency);
    ok(memory!.dataBytes > reserved && memory!.addressSpaceBytes > memory!.dataBytes, work);
  }
  equal(toolLimits("hardware", given).memory, undefined);
});

Deno.test("what would need more than there is in all is refused at once, with the setting", async () => {
  using budget = new MemoryBudget({ bytes: GIB, isShared: true, world: new ManualClock() });
  await rejects(
    budget.reserve({ signal: NEVER, work: "decode", size: film(8192, 4320, "rgba64le") }),
    (error) => {
      ok(error instanceof Refusal && error.status === 422);
      equal(error.details[0]!.field, "source_uri");
      match(error.message, /bytes of memory, and SERVICE_DECODE_MEMORY_BUDGET_BYTES allows 1073741824$/);
      return true;
    },
  );
  equal(budget.used, 0);
});

Deno.test("what finds no memory waits for a bounded time, and is then told when to come back", async () => {
  const world = new ManualClock();
  using budget = new MemoryBudget({ bytes: GIB, isShared: true, world });
  const request = { signal: NEVER, work: "probe", size: null } as const;
  const held = await budget.reserve({ ...request, principalKey: "a" });
  const late = rejects(
    budget.reserve({ ...request, principalKey: "a" }),
    (error) => error instanceof RefusalForNow && error.status === 503 && error.retryAfterSeconds > 0,
  );
  // Another principal has its place meanwhile.
  const other = await budget.reserve({ ...request, principalKey: "b", work: "stream_probe" });
  await world.advance(30_000);
  await late;
  held.release();
  other.release();
  equal(budget.used, 0);
});
