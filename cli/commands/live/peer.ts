/** The WebRTC side of a publisher: offers video and sound, connects, and sends RTP packets. */

import { Buffer } from "node:buffer";
import { MediaStreamTrack, RTCPeerConnection, useOPUS, useVP8 } from "werift";

export const PEER_DEADLINE_MS = 15_000;
const GATHER_DEADLINE_MS = 5_000;

export interface Peer extends AsyncDisposable {
  /** SDP with all candidates. */
  readonly offer: string;
  /** False where there is no connection in time. */
  connect(answer: string, signal: AbortSignal): Promise<boolean>;
  sendVideo(packet: Uint8Array): void;
  sendSound(packet: Uint8Array): void;
}

export async function startPeer(withSound: boolean): Promise<Peer> {
  const connection = new RTCPeerConnection({
    codecs: { video: [useVP8()], audio: [useOPUS()] },
    iceServers: [],
    // A server that is tried out on the same machine may listen there only.
    iceAdditionalHostAddresses: ["127.0.0.1"],
    bundlePolicy: "max-bundle",
  });
  const video = new MediaStreamTrack({ kind: "video" });
  const sound = new MediaStreamTrack({ kind: "audio" });
  connection.addTransceiver(video, { direction: "sendonly" });
  if (withSound) connection.addTransceiver(sound, { direction: "sendonly" });
  await connection.setLocalDescription(await connection.createOffer());
  await until(GATHER_DEADLINE_MS, (done) => {
    if (connection.iceGatheringState === "complete") done(true);
    connection.iceGatheringStateChange.subscribe((state) => state === "complete" && done(true));
  });
  return {
    offer: connection.localDescription!.sdp,
    async connect(answer, signal) {
      await connection.setRemoteDescription({ type: "answer", sdp: answer });
      return await until(PEER_DEADLINE_MS, (done) => {
        if (connection.connectionState === "connected") done(true);
        connection.connectionStateChange.subscribe((state) => {
          if (state === "connected") done(true);
          if (state === "failed") done(false);
        });
        signal.addEventListener("abort", () => done(false), { once: true });
      });
    },
    sendVideo: (packet) => video.writeRtp(Buffer.from(packet)),
    sendSound: (packet) => sound.writeRtp(Buffer.from(packet)),
    [Symbol.asyncDispose]: () => connection.close(),
  };
}

/** What `start` is done with, or false when the time is over. */
async function until(timeoutMs: number, start: (done: (value: boolean) => void) => void): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const timer = setTimeout(() => resolve(false), timeoutMs);
  start(resolve);
  try {
    return await promise;
  } finally {
    clearTimeout(timer);
  }
}
