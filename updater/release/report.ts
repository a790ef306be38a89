/** What was measured of a release in one of its stages, and how it is judged by the limits of its manifest. */

import { z } from "zod";
import { integerField, nameField, numberField, readFields } from "./field_rules.ts";
import { type Manifest, stageField } from "./manifest.ts";

const REPORT = z.strictObject({
  release_id: nameField,
  stage: stageField,
  samples: integerField(0),
  success_rate: numberField("a number from 0 to 1", 0, 1),
  p95_ms: numberField("a number of at least 0", 0),
  rss_bytes: integerField(0),
});

export type Report = z.infer<typeof REPORT>;

export interface Judgment {
  readonly verdict: "passed" | "failed" | "too few samples";
  /** Each limit that is not kept, with its figures. */
  readonly reasons: readonly string[];
}

export function readReport(text: string): Report {
  return readFields("the report", text, REPORT);
}

/** Too few samples say nothing: neither good nor bad figures count then. */
export function judged(report: Report, { acceptance }: Manifest): Judgment {
  if (report.samples < acceptance.minimum_samples) {
    return {
      verdict: "too few samples",
      reasons: [`samples: ${report.samples} of ${acceptance.minimum_samples}`],
    };
  }
  const reasons: string[] = [];
  if (report.success_rate < acceptance.minimum_success_rate) {
    reasons.push(`success_rate: ${report.success_rate} is below ${acceptance.minimum_success_rate}`);
  }
  if (report.p95_ms > acceptance.maximum_p95_ms) {
    reasons.push(`p95_ms: ${report.p95_ms} is above ${acceptance.maximum_p95_ms}`);
  }
  if (report.rss_bytes > acceptance.maximum_rss_bytes) {
    reasons.push(`rss_bytes: ${report.rss_bytes} is above ${acceptance.maximum_rss_bytes}`);
  }
  return { verdict: reasons.length === 0 ? "passed" : "failed", reasons };
}
