import assert from "node:assert/strict";
import { retryAfterMs } from "../../src/base/retry_after.ts";

Deno.test("the wait is read from every form of the header", () => {
  const nowMs = Date.UTC(2026, 10, 27, 23, 0, 0);
  const rows: [string, number | null][] = [
    ["0", 0],
    ["2", 2_000],
    ["1.5", 1_500],
    [" 3 s", 3_000],
    ["4, 4", 4_000],
    ["999999", 86_400_000],
    ["Fri, 27 Nov 2026 23:00:05 GMT", 5_000],
    ["Friday, 27-Nov-26 23:00:05 GMT", 5_000],
    ["Fri Nov 27 23:00:05 2026", 5_000],
    ["2026-11-27T23:00:05Z", 5_000],
    ["Fri, 27 Nov 2026 22:59:00 GMT", 0],
    [String(nowMs / 1000 + 5), 5_000],
    ["-5", null],
    ["soon", null],
    ["", null],
  ];
  for (const [value, expected] of rows) {
    assert.equal(retryAfterMs(new Headers({ "retry-after": value }), nowMs), expected, value);
  }
  assert.equal(retryAfterMs(new Headers({ "retry-after": "9", "retry-after-ms": "20" }), nowMs), 20);
  assert.equal(retryAfterMs(new Headers(), nowMs), null);
});
