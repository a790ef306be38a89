/** Reports of frames in shared memory: a reader waits for what is still to come, but never for ever. */

import { equal } from "node:assert/strict";
import { newReports, REPORT, ReportReader, ReportWriter } from "../../src/media/frame_reports.ts";

const { isReported, isKey } = REPORT;

Deno.test("each frame has its report; behind the end, or far behind the writer, there is none", () => {
  const reports = newReports();
  const writer = new ReportWriter(reports);
  const reader = new ReportReader(reports);
  equal(reader.takeNow(), 0);
  for (let frame = 1; frame < 10_000; frame++) writer.add(frame === 9_000 ? isReported | isKey : isReported);
  const taken: number[] = [];
  for (let frame = 1; frame < 10_000; frame++) taken.push(reader.takeNow());
  equal(taken.indexOf(isReported), 9_999 - 4096 - 1);
  equal(taken.indexOf(isReported | isKey), 9_000 - 2);
  writer.end();
  equal(reader.take(), 0);
});

Deno.test("a reader that may not block hears whether a report is still to come", () => {
  const reports = newReports();
  const writer = new ReportWriter(reports);
  const reader = new ReportReader(reports);
  equal(reader.isAwaited, true);
  writer.add(isReported);
  equal(reader.isAwaited, false);
  equal(reader.takeNow(), isReported);
  equal(reader.isAwaited, true);
  writer.end();
  equal(reader.isAwaited, false);
});
