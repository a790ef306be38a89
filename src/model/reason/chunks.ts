/** Calculations about chunks: which pictures are sent, the lag of the processing, the tokens. */

import { NO_TOKENS, type TokenCounts } from "../infer/inference.ts";

/**
 * The positions of the chosen frames among the `frames` of a chunk, ascending. They depend on the number of
 * frames only and not on the results of the filter. Of 25 frames, one picture is 12, two are 0 and 24, three
 * are 0, 12 and 24.
 */
export function chosenPositions(frames: number, wanted: number): number[] {
  if (frames <= 0 || wanted <= 0) return [];
  if (wanted >= frames) return Array.from({ length: frames }, (_, position) => position);
  if (wanted === 1) return [Math.floor(frames / 2)];
  const positions = Array.from(
    { length: wanted },
    (_, step) => Math.floor(step * (frames - 1) / (wanted - 1)),
  );
  return [...new Set(positions)];
}

/** The lag of a chunk, all in milliseconds. */
export interface ChunkLag {
  /** Wall time from the start of the chunk to its end. */
  readonly process_ms: number;
  /** Media time from its first to its last frame; 0 for a chunk of one frame. */
  readonly source_span_ms: number;
  /** How much longer the processing took than the media last, never below 0. */
  readonly lag_ms: number;
}

export function chunkLag(
  { processMs, firstPtsMs, lastPtsMs }: { processMs: number; firstPtsMs: number; lastPtsMs: number },
): ChunkLag {
  const spanMs = lastPtsMs - firstPtsMs;
  return { process_ms: processMs, source_span_ms: spanMs, lag_ms: Math.max(0, processMs - spanMs) };
}

/** The value at rank round((n-1) * p / 100) of the sorted values; 0 when there are none. */
export function percentile(values: readonly number[], p: number): number {
  const sorted = values.toSorted((left, right) => left - right);
  return sorted[Math.round((sorted.length - 1) * p / 100)] ?? 0;
}

/** The id of a moment: unique within a request, and always the same for the same moment. */
export function momentId(requestId: string, chunkIndex: number, momentIndex: number): string {
  return `${requestId}:${chunkIndex}:${momentIndex}`;
}

export function sumTokens(counts: Iterable<TokenCounts>): TokenCounts {
  let sum = NO_TOKENS;
  for (const count of counts) {
    sum = {
      prompt_tokens: sum.prompt_tokens + count.prompt_tokens,
      completion_tokens: sum.completion_tokens + count.completion_tokens,
      thinking_tokens: sum.thinking_tokens + count.thinking_tokens,
      total_tokens: sum.total_tokens + count.total_tokens,
    };
  }
  return sum;
}
