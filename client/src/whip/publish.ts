/** Publishing from a browser: the tracks of a MediaStream become a live session of the service (WHIP, RFC
 * 9725).
 */

import type { Connection, RequestOptions } from "../http/connection.ts";
import { NetworkError } from "../http/errors.ts";
import type { AttachConfig, PromptRequest } from "../types.ts";
import { fragmentOf, restartedAnswer } from "./fragment.ts";
import type { IceServer } from "./ice_servers.ts";
import type { IceCandidate, Media, PeerConnection, RtcGlobals } from "./rtc.ts";
import { sendIce, sendOffer, sessionPath, type WhipAnswer } from "./session_requests.ts";

/**
 * `connected` is when media flows. `disconnected` may become `connected` again, `failed` only by
 * `restartIce`.
 */
export type PublishState =
  | "connecting"
  | "connected"
  | "disconnected"
  | "failed"
  | "closed";

export interface PublishOptions extends RequestOptions {
  /** The video codec that is wanted most, where the browser has it: `H264`, `VP8`, `VP9`, `AV1`, `H265`. */
  codec?: string;
  /** Used beside those that the service names. */
  iceServers?: IceServer[];
  /** Called on each change, and not after `close`. */
  onState?: (state: PublishState) => void;
}

/** A live session whose media comes from this page. */
export class PublishSession {
  readonly runId: string;
  readonly sessionId: string;
  /** The RTCPeerConnection, for its statistics. Its type here is the part of it that the library uses. */
  readonly peer: PeerConnection;
  readonly #connection: Connection;
  #answer: string;
  #etag: string | null;
  #isClosed = false;
  /** Candidates that are to be sent; null is the end of them. */
  #candidates: (IceCandidate | null)[] = [];
  /** The last of the requests about ICE: they are sent one after the other. */
  #sending: Promise<unknown> = Promise.resolve();

  /** Made by `publish`, once the service has answered the offer. */
  constructor(
    connection: Connection,
    peer: PeerConnection,
    answer: WhipAnswer,
  ) {
    this.#connection = connection;
    this.peer = peer;
    this.runId = answer.runId ?? "";
    this.sessionId = answer.sessionId;
    this.#answer = answer.answerSdp;
    this.#etag = answer.etag;
  }

  get state(): PublishState {
    const state = this.#isClosed ? "closed" : this.peer.connectionState;
    return state === "new" ? "connecting" : state as PublishState;
  }

  /** Changes what the model is asked, between two pictures. */
  async updatePrompt(prompt: PromptRequest, options?: RequestOptions): Promise<void> {
    const call = {
      method: "PATCH",
      path: `${sessionPath(this.sessionId)}/prompt`,
      json: prompt,
    } as const;
    await this.#connection.json(call, options);
  }

  /**
   * Finds a new way to the service, as after a change of network. Media goes on when the state is `connected`
   * again.
   */
  restartIce(options?: RequestOptions): Promise<void> {
    const restarted = this.#sending.then(() => this.#restart(options));
    this.#sending = restarted.catch(() => {});
    return restarted;
  }

  /**
   * Ends the session, which completes its run, and the connection. The tracks go on: they are the caller's.
   */
  async close(options?: RequestOptions): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    try {
      await this.#connection.json({
        method: "DELETE",
        path: sessionPath(this.sessionId),
      }, options);
    } finally {
      this.peer.close();
    }
  }

  /** Takes a candidate that the browser has found. */
  add(candidate: IceCandidate | null): void {
    this.#candidates.push(candidate);
    this.#sending = this.#sending.then(() => this.#sendCandidates());
  }

  /** Sends all that have come. What the service does not get, it learns from the browser's own checks. */
  async #sendCandidates(): Promise<void> {
    while (this.#candidates.length > 0 && !this.#isClosed) {
      const body = fragmentOf(this.peer.localDescription?.sdp ?? "", this.#candidates.splice(0, CANDIDATES));
      const ifMatch = this.#etag === null ? {} : { ifMatch: this.#etag };
      await sendIce(this.#connection, this.sessionId, body, ifMatch).catch(() => {});
    }
  }

  /** Candidates that are found meanwhile are sent afterwards, when the service knows the new credentials. */
  async #restart(options?: RequestOptions): Promise<void> {
    options?.signal?.throwIfAborted();
    const offer = await this.peer.createOffer({ iceRestart: true });
    this.#candidates = [];
    await this.peer.setLocalDescription(offer);
    const fragment = fragmentOf(offer.sdp ?? "", []);
    const answer = await sendIce(this.#connection, this.sessionId, fragment, { ...options, ifMatch: "*" });
    if (!answer) throw new NetworkError("the service did not restart ICE");
    this.#answer = restartedAnswer(this.#answer, answer.fragment);
    this.#etag = answer.etag;
    await this.peer.setRemoteDescription({ type: "answer", sdp: this.#answer });
  }
}

/** As many of one request are taken. */
const CANDIDATES = 32;

/**
 * Resolves when the service has answered; the connection is then being made. Rejects, with nothing left,
 * where it refuses.
 */
export async function publishMedia(
  connection: Connection,
  media: Media,
  attach: AttachConfig | undefined,
  { codec, iceServers = [], onState, ...options }: PublishOptions = {},
): Promise<PublishSession> {
  const { RTCPeerConnection } = globalThis as RtcGlobals;
  if (!RTCPeerConnection) {
    throw new TypeError(
      "publish needs a browser: there is no RTCPeerConnection",
    );
  }
  const peer = new RTCPeerConnection({ iceServers });
  let session: PublishSession | undefined;
  try {
    for (const track of media.getTracks()) {
      const transceiver = peer.addTransceiver(track, {
        direction: "sendonly",
        streams: [media],
      });
      if (track.kind === "video" && codec) {
        transceiver.setCodecPreferences?.(preferred(codec));
      }
    }
    const offer = await peer.createOffer();
    // Without its candidates: the search for them begins with the local description, when the servers for it
    // are known.
    const answer = await sendOffer(
      connection,
      offer.sdp ?? "",
      attach,
      options,
    );
    session = new PublishSession(connection, peer, answer);
    peer.onicecandidate = ({ candidate }) => session!.add(candidate);
    peer.onconnectionstatechange = () => onState?.(session!.state);
    if (answer.iceServers.length > 0) {
      peer.setConfiguration({
        iceServers: [...iceServers, ...answer.iceServers],
      });
    }
    await peer.setLocalDescription(offer);
    await peer.setRemoteDescription({ type: "answer", sdp: answer.answerSdp });
    options.signal?.throwIfAborted();
    return session;
  } catch (error) {
    peer.close();
    await session?.close().catch(() => {});
    throw error;
  }
}

/** All codecs of the browser, those of this name first. */
function preferred(name: string) {
  const { codecs = [] } = (globalThis as RtcGlobals).RTCRtpSender?.getCapabilities?.("video") ?? {};
  const isWanted = ({ mimeType }: { mimeType: string }) =>
    mimeType.toLowerCase() === `video/${name}`.toLowerCase();
  return [
    ...codecs.filter(isWanted),
    ...codecs.filter((codec) => !isWanted(codec)),
  ];
}
