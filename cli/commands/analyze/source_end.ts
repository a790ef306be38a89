/** What is missing of a source, in sentences. */

import { clock } from "../../contact_sheet/marks.ts";

/** How a source ended, as answers have it. */
interface SourceEnd {
  readonly ended_early?: { ended_at_ms: number; expected_end_ms: number; reason: string };
  readonly source_warning?: string;
}

/** None for a source of which all came. */
export function sourceEndWarnings({ ended_early: early, source_warning: warning }: SourceEnd): string[] {
  const end = early &&
    `the source ends at ${clock(early.ended_at_ms)} of ${clock(early.expected_end_ms)}: ${early.reason}`;
  return [
    ...(end ? [end] : []),
    ...(warning === undefined ? [] : [`not all of the source came: ${warning}`]),
  ];
}
