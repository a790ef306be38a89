/** What of WebRTC in a browser is used. The library has no types of browsers, so that it can be used without
 * them.
 */

import type { IceServer } from "./ice_servers.ts";

export interface MediaTrack {
  readonly kind: string;
}

/** A MediaStream. */
export interface Media {
  getTracks(): readonly MediaTrack[];
}

export interface Codec {
  readonly mimeType: string;
}

/** An RTCPeerConnection. */
export interface PeerConnection {
  readonly connectionState: string;
  readonly localDescription: { readonly sdp: string } | null;
  onicecandidate: ((event: { candidate: IceCandidate | null }) => void) | null;
  onconnectionstatechange: (() => void) | null;
  addTransceiver(
    track: MediaTrack,
    init: { direction: "sendonly"; streams: readonly Media[] },
  ): Transceiver;
  createOffer(
    options?: { iceRestart?: boolean },
  ): Promise<{ sdp?: string; type: string }>;
  setLocalDescription(
    description: { sdp?: string; type: string },
  ): Promise<void>;
  setRemoteDescription(
    description: { sdp: string; type: "answer" },
  ): Promise<void>;
  setConfiguration(configuration: { iceServers: IceServer[] }): void;
  getStats(): Promise<unknown>;
  close(): void;
}

export interface IceCandidate {
  readonly candidate: string;
  readonly sdpMid: string | null;
}

interface Transceiver {
  setCodecPreferences?(codecs: readonly Codec[]): void;
}

/** The classes of a browser. */
export interface RtcGlobals {
  readonly RTCPeerConnection?: new (
    configuration?: { iceServers: readonly IceServer[] },
  ) => PeerConnection;
  readonly RTCRtpSender?: {
    getCapabilities?(kind: string): { codecs: readonly Codec[] } | null;
  };
}
