/** DTLS handshake messages that are sent again because our answer took long (RFC 6347, 4.2.4). */

import type { Buffer } from "node:buffer";

const HANDSHAKE = 22;
const HEAD_BYTES = 13 + 12;
const CLIENT_HELLO = 1;
const SERVER_HELLO = 2;
const SERVER_HELLO_DONE = 14;

/**
 * Whether a datagram repeats a flight that werift has answered and would answer with new keys, which the
 * other side does not have: both would believe that they are connected, and no media could be decrypted. Our
 * answer needs no reminder, because werift repeats it by its own timer. Repeats that werift answers well are
 * not named here: a client's second hello while its answer is under way, and a client's last flight. `flight`
 * is the number of the last flight that we have sent (RFC 6347, figure 1). Asked for every media packet, so
 * it allocates nothing.
 */
export function isRepeatedFlight(datagram: Buffer, role: "client" | "server", flight: number): boolean {
  if (datagram[0] !== HANDSHAKE || datagram.length < HEAD_BYTES) return false;
  if (datagram.readUInt16BE(3) !== 0) return false; // encrypted, so part of the last flight
  const type = datagram[13]!;
  if (role === "client") return flight >= 5 && type >= SERVER_HELLO && type <= SERVER_HELLO_DONE;
  const isFirstHello = datagram.readUInt16BE(17) === 0;
  return type === CLIENT_HELLO && flight >= (isFirstHello ? 4 : 6);
}
