/** DTLS close_notify alerts: records of type 21 that only the other end of the handshake can encrypt. */

import { Buffer } from "node:buffer";
import type { DtlsSocket } from "werift";

const ALERT = 21;
const HEAD_BYTES = 13;
const WARNING = 1;
const CLOSE_NOTIFY = 0;

/** The record class of werift's cipher, which werift does not export. */
type DtlsRecord = Parameters<DtlsSocket["cipher"]["decryptPacket"]>[0];

export function mayBeAlert(datagram: Uint8Array): boolean {
  return datagram[0] === ALERT;
}

/** Whether the datagram is an authentic `close_notify`; false for a forged one. */
export function isCloseNotify(dtls: DtlsSocket, datagram: Buffer): boolean {
  if (!mayBeAlert(datagram) || datagram.length < HEAD_BYTES) return false;
  const epoch = datagram.readUInt16BE(3);
  const length = datagram.readUInt16BE(11);
  if (epoch === 0 || datagram.length < HEAD_BYTES + length) return false;
  const fragment = datagram.subarray(HEAD_BYTES, HEAD_BYTES + length);
  try {
    const alert = dtls.cipher.decryptPacket(recordOf(epoch, datagram.readUIntBE(5, 6), fragment));
    return alert.length === 2 && alert[1] === CLOSE_NOTIFY;
  } catch {
    return false;
  }
}

/**
 * A `close_notify` datagram, which ends the session on the other side at once. Null when it cannot be
 * encrypted.
 */
export function closeNotify(dtls: DtlsSocket): Buffer | null {
  const { epoch } = dtls.dtls;
  const sequence = ++dtls.dtls.recordSequenceNumber;
  try {
    const { fragment } = dtls.cipher.encryptPacket(
      recordOf(epoch, sequence, Buffer.from([WARNING, CLOSE_NOTIFY])),
    );
    const head = Buffer.alloc(HEAD_BYTES);
    head.set([ALERT, 0xfe, 0xfd]);
    head.writeUInt16BE(epoch, 3);
    head.writeUIntBE(sequence, 5, 6);
    head.writeUInt16BE(fragment.length, 11);
    return Buffer.concat([head, fragment]);
  } catch {
    return null;
  }
}

function recordOf(epoch: number, sequenceNumber: number, fragment: Buffer): DtlsRecord {
  const recordLayerHeader = {
    contentType: ALERT,
    protocolVersion: { major: 0xfe, minor: 0xfd },
    epoch,
    sequenceNumber,
    contentLen: fragment.length,
  };
  return { recordLayerHeader, fragment } as DtlsRecord;
}
