import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { isRepeatedFlight } from "../../src/rtc/repeated_flight.ts";

const HANDSHAKE = 22;
const CHANGE_CIPHER_SPEC = 20;
const MEDIA = 0x80;

/** A DTLS record with the head of a handshake message. */
function datagram(message: number, { kind = HANDSHAKE, epoch = 0, sequence = 0 } = {}): Buffer {
  const data = Buffer.alloc(40);
  data[0] = kind;
  data.writeUInt16BE(epoch, 3);
  data[13] = message;
  data.writeUInt16BE(sequence, 17);
  return data;
}

Deno.test("a client has answered flight 4 once it has sent flight 5", () => {
  for (const message of [2, 11, 12, 13, 14]) {
    const repeats = (flight: number) => isRepeatedFlight(datagram(message), "client", flight);
    assert.deepEqual([1, 3, 5, 7].map(repeats), [false, false, true, true], `message ${message}`);
  }
});

Deno.test("a server has answered the first hello once it has sent flight 4, the second one with flight 6", () => {
  const repeats = (sequence: number) => (flight: number) =>
    isRepeatedFlight(datagram(1, { sequence }), "server", flight);
  assert.deepEqual([0, 2, 4, 6].map(repeats(0)), [false, false, true, true]);
  assert.deepEqual([0, 2, 4, 6].map(repeats(1)), [false, false, false, true]);
});

Deno.test("the last flight of both sides, encrypted records, media and short datagrams pass", () => {
  const client = ["client", 7] as const, server = ["server", 6] as const;
  for (const message of [11, 16, 15]) assert.ok(!isRepeatedFlight(datagram(message), ...server));
  for (const [role, flight] of [client, server]) {
    assert.ok(!isRepeatedFlight(datagram(20, { epoch: 1 }), role, flight));
    assert.ok(!isRepeatedFlight(datagram(2, { kind: CHANGE_CIPHER_SPEC }), role, flight));
    assert.ok(!isRepeatedFlight(datagram(2, { kind: MEDIA }), role, flight));
    assert.ok(!isRepeatedFlight(datagram(2).subarray(0, 24), role, flight));
  }
});
