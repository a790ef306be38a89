/** The sound of a pulled live source: ffmpeg writes samples into a socket, and they are given on in blocks of
 * 20 ms.
 */

import { SAMPLE_BYTES, SIDECAR_SAMPLE_RATE_HZ } from "../../model/sidecars/wav.ts";

/** Called with each block in order; the first one begins where the source begins, and silence fills gaps. */
export type BlockSink = (block: Uint8Array<ArrayBuffer>) => void;

export const BLOCK_MS = 20;
/** Bytes of a block: mono, 16 kHz, 16 bits. */
const BLOCK_BYTES = BLOCK_MS * SIDECAR_SAMPLE_RATE_HZ / 1000 * SAMPLE_BYTES;
const READ_BYTES = 64 << 10;

/** Reads as fast as the samples come, so that ffmpeg never waits here while it should decode video. */
export async function readSound(connection: Deno.UnixConn, onBlock: BlockSink): Promise<void> {
  using _connection = connection;
  const buffer = new Uint8Array(READ_BYTES);
  let kept = 0;
  for (;;) {
    const count = await connection.read(buffer.subarray(kept)).catch(() => null);
    if (count === null) return;
    const end = kept + count;
    const whole = end - end % BLOCK_BYTES;
    for (let at = 0; at < whole; at += BLOCK_BYTES) onBlock(buffer.slice(at, at + BLOCK_BYTES));
    buffer.copyWithin(0, whole, end);
    kept = end - whole;
  }
}
