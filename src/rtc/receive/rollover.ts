/** Counts how often the sequence number of an SRTP stream has wrapped, which decryption needs (RFC 3711,
 * 3.3.1 and A).
 */

/** werift's state of a stream. */
export interface RolloverState {
  rolloverCounter: number;
  lastSequenceNumber: number;
  rolloverHasProcessed?: boolean;
}

/**
 * Chooses the counter (previous, same or next) that brings the packet nearest to the last one. werift itself
 * only looks at the 100 numbers around the wrap: if a burst were lost there, or a packet from before the wrap
 * were sent again, no later packet could be decrypted.
 */
export function followRollover(sequence: number, state: RolloverState): void {
  if (state.rolloverHasProcessed) {
    const step = sequence - state.lastSequenceNumber;
    if (step < -0x8000) state.rolloverCounter = (state.rolloverCounter + 1) >>> 0;
    else if (step > 0x8000 && state.rolloverCounter > 0) state.rolloverCounter--;
  }
  state.rolloverHasProcessed = true;
  state.lastSequenceNumber = sequence;
}
