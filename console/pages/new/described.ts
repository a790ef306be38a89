/** The chunks of a reasoned run, as a model describes them. */

import { client } from "../../service/session.ts";

export interface Described {
  readonly words: string | null;
  /** Media time of its end. */
  readonly endMs: number;
}

export async function* describedEvents(
  runId: string,
  signal: AbortSignal,
): AsyncGenerator<Described, void> {
  const wishes = { kind: "semantic_chunk_inferred", signal };
  for await (
    const { payload } of client.peek().subscribeEvents(runId, wishes)
  ) {
    const { description, summary, pts_end_ms } = payload;
    const words = [description, summary].find((text) => typeof text === "string" && text !== "");
    yield {
      words: typeof words === "string" ? words : null,
      endMs: typeof pts_end_ms === "number" ? pts_end_ms : 0,
    };
  }
}
