/** How much sound an Opus packet contains, read from its first two bytes (RFC 6716, 3.1). */

/** Opus counts time at 48 kHz, whatever rate the sound was recorded at. */
export const OPUS_SAMPLES_PER_MS = 48;
/** RFC 6716, 3.2.5: no packet is longer than 120 ms. */
const PACKET_SAMPLES_MAX = 120 * OPUS_SAMPLES_PER_MS;

/** Samples at 48 kHz in a packet; 0 for bytes that are no Opus packet. */
export function opusSamples(packet: Uint8Array): number {
  if (packet.length === 0) return 0;
  const head = packet[0]!;
  const code = head & 3;
  const frames = code === 0 ? 1 : code < 3 ? 2 : (packet[1] ?? 0) & 63;
  const samples = frames * frameSamples(head >> 3);
  return samples <= PACKET_SAMPLES_MAX ? samples : 0;
}

/** RFC 6716, table 2: SILK has frames of 10 to 60 ms, hybrid of 10 or 20, CELT of 2.5 to 20. */
function frameSamples(configuration: number): number {
  if (configuration < 12) return [10, 20, 40, 60][configuration & 3]! * OPUS_SAMPLES_PER_MS;
  if (configuration < 16) return [10, 20][configuration & 1]! * OPUS_SAMPLES_PER_MS;
  return 2.5 * OPUS_SAMPLES_PER_MS << (configuration & 3);
}
