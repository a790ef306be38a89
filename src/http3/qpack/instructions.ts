/** Checks the instructions of a client's QPACK streams (RFC 9204 4.3, 4.4): without a dynamic table nearly
 * none is allowed.
 */

import { ConnectionFault } from "../wire/faults.ts";

/** The instruction `001 capacity 5` with capacity 0, the only capacity that is allowed. */
const SET_CAPACITY_0 = 0x20;

/** Checks what a client does to the table of its requests: it may only say that it uses none. */
export function checkEncoderBytes(bytes: Uint8Array): void {
  if (bytes.some((byte) => byte !== SET_CAPACITY_0)) {
    throw new ConnectionFault("QPACK_ENCODER_STREAM_ERROR", "the dynamic table has no room");
  }
}

const CANCELLATION_BITS = 0x3f;

/**
 * Checks what a client tells of the answers that it has decoded. It may say that it has given up a stream
 * (`01 stream 6`). It may not acknowledge an answer that needs the dynamic table: there are none.
 */
export class DecoderCheck {
  #isInNumber = false;

  take(bytes: Uint8Array): void {
    for (const byte of bytes) {
      if (this.#isInNumber) {
        this.#isInNumber = byte >= 0x80;
        continue;
      }
      if (byte >> 6 !== 0b01) {
        throw new ConnectionFault(
          "QPACK_DECODER_STREAM_ERROR",
          "nothing was inserted into the dynamic table",
        );
      }
      this.#isInNumber = (byte & CANCELLATION_BITS) === CANCELLATION_BITS;
    }
  }
}
