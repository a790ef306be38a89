/** How often an SRTP stream's sequence has wrapped: part of the key of each packet (RFC 3711, 3.3.1 and A). */

/** What werift remembers of a stream. */
export interface RolloverState {
  rolloverCounter: number;
  lastSequenceNumber: number;
  rolloverHasProcessed?: boolean;
}

/**
 * The nearest of three counters to the last packet. werift looks at the 100 numbers around the wrap only, so a burst
 * lost there, or a packet from before the wrap that is sent again, would leave every later packet undecipherable.
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
