/** What the HTTP thread and a live Worker say to each other: orders go to the Worker, reports come from it. */

import type { Tools } from "../base/program_paths.ts";
import type { MediaInput } from "../media/input.ts";
import type { MediaInfo } from "../media/probe.ts";
import type { Extent, ImageCoordinates, NormalizedRegion } from "../model/frames/coordinates.ts";
import type { ClipSettings } from "../model/live/clip.ts";
import type { VideoCodec } from "../model/live/offer.ts";
import type { GateReason, GateThresholds } from "../model/frames/signals.ts";
import type { TriggerProgram } from "../model/triggers/program.ts";
import type { RestrictedZone } from "../model/policies/zone.ts";

/** Everything that is fixed for one generation of a live session, known before anything starts. */
export interface SessionSettings {
  readonly sessionId: string;
  /** Process-wide, from 1. */
  readonly generation: number;
  readonly gateThresholds: GateThresholds;
  /** Frames that novelty looks back on. Contract 3.3. */
  readonly windowSize: number;
  /** What is cut out of each picture before it is looked at; the zone's region where there is a zone. */
  readonly crop: NormalizedRegion | null;
  readonly zone: RestrictedZone | null;
  readonly trigger: TriggerProgram | null;
  /** Clips instead of keyframes. */
  readonly clip: ClipSettings | null;
  /** Whether kept frames are reported as pictures: not with clips. */
  readonly wantsKeyframes: boolean;
  readonly wantsAudio: boolean;
  /** What admission reserved for; the decoder scales larger pictures down. */
  readonly maxFrame: Extent;
  readonly ice: IceSettings;
}

export interface IceSettings {
  /** URLs such as `stun:stun.example.org:3478`. */
  readonly stunServers: readonly string[];
  readonly turn: { readonly url: string; readonly username: string; readonly credential: string } | null;
}

/** What a Worker needs to know before its first session. */
export interface LiveStart {
  readonly tools: Pick<Tools, "ffmpeg" | "mkfifo" | "prlimit">;
  /** Where named pipes may lie. */
  readonly tempDir: string;
  /** What ffmpeg decodes besides VP8 and H.264; nothing when absent. */
  readonly decodes?: readonly VideoCodec[];
}

/** `start` comes once, before any other, in answer to `ready`. Orders for a session that is gone are ignored. */
export type LiveOrder =
  | { readonly kind: "start"; readonly start: LiveStart }
  | { readonly kind: "offer"; readonly settings: SessionSettings; readonly offer: string }
  /** A live input that ffmpeg reads itself; again, with another input, after a `gap`. */
  | {
    readonly kind: "pull";
    readonly settings: SessionSettings;
    readonly input: MediaInput;
    readonly info: MediaInfo;
  }
  /** The raw body: a candidate line or an RFC 8840 fragment; empty for the end of candidates. */
  | { readonly kind: "candidate"; readonly sessionId: string; readonly fragment: string }
  | {
    readonly kind: "restart_ice";
    readonly sessionId: string;
    readonly fragment: string;
    readonly orderId: number;
  }
  /** Gives credits back: so many more of each may be reported. */
  | {
    readonly kind: "acknowledge";
    readonly sessionId: string;
    /** Keyframes, or clips. */
    readonly pictures: number;
    /** Pictures that a zone or a trigger reported. */
    readonly evidence: number;
    readonly audioWindows: number;
  }
  | { readonly kind: "close"; readonly sessionId: string };

/** `ready` comes once, when the Worker has loaded and listens; everything else belongs to a session, and nothing comes for one after its `closed`. */
export type LiveReport =
  | { readonly kind: "ready" }
  /** A failure that nobody waited for; the session that set it going, where that is known, lives on. */
  | { readonly kind: "stray"; readonly sessionId: string | null; readonly message: string }
  | SessionReport;

export type SessionReport =
  | {
    readonly kind: "answered";
    readonly sessionId: string;
    readonly answer: string;
    readonly video: { readonly codec: string } | null;
    readonly audioTracks: number;
  }
  /** The offer cannot be served; nothing is held for it any more, and no other report follows. */
  | {
    readonly kind: "refused";
    readonly sessionId: string;
    readonly status: 400 | 415 | 500;
    readonly message: string;
  }
  | { readonly kind: "connected"; readonly sessionId: string; readonly tookMs: number }
  | { readonly kind: "picture"; readonly sessionId: string; readonly picture: LivePicture }
  | { readonly kind: "loop_detected"; readonly sessionId: string; readonly frame: FrameFacts }
  /** One clip: its frames in order, and the facts of the last one. The next one is made when this one is acknowledged. */
  | {
    readonly kind: "clip";
    readonly sessionId: string;
    readonly frame: FrameFacts;
    /** Media time of the first frame. */
    readonly startPtsMs: number;
    readonly jpegs: readonly Uint8Array<ArrayBuffer>[];
  }
  | { readonly kind: "audio_window"; readonly sessionId: string; readonly window: OpusWindow }
  | {
    readonly kind: "decoder_restarted";
    readonly sessionId: string;
    readonly reason: "stalled" | "exited";
    /** Media time of the last frame before. */
    readonly ptsMs: number;
    /** In this session so far, this one included. */
    readonly restarts: number;
  }
  /** A pulled source gave no more; the session waits for another `pull` order or for `close`. */
  | {
    readonly kind: "gap";
    readonly sessionId: string;
    readonly reason: string;
    readonly lastPtsMs: number | null;
  }
  /** The first frame after a gap. */
  | { readonly kind: "resumed"; readonly sessionId: string }
  | { readonly kind: "counts"; readonly sessionId: string; readonly counts: LiveCounts }
  | {
    readonly kind: "ice_restarted";
    readonly sessionId: string;
    readonly orderId: number;
    /** The answering fragment; null when the restart was not possible. */
    readonly fragment: string | null;
  }
  /** The session is over on the peer's side or by a fault; `closed` follows by itself. */
  | {
    readonly kind: "ended";
    readonly sessionId: string;
    readonly cause: EndCause;
    readonly message: string;
  }
  /** Everything is let go of: processes, sockets, memory. */
  | { readonly kind: "closed"; readonly sessionId: string };

/** A message as a session writes it: its id is added when it is sent. */
export type WithoutSessionId<Message> = Message extends { sessionId: string } ? Omit<Message, "sessionId">
  : Message;

export const END_CAUSES = [
  "peer_disconnected",
  "peer_failed",
  "peer_closed",
  "worker_fault",
  "source_ended",
] as const;
export type EndCause = typeof END_CAUSES[number];

/** Which frame a report speaks of, and what was measured of it. Contract 3.2 and 3.3. */
export interface FrameFacts {
  /** Counts the session's access units from 0. */
  readonly frameIndex: number;
  /** The RTP time / 90, an integer. */
  readonly ptsMs: number;
  readonly coordinates: ImageCoordinates;
  readonly gateReason: GateReason;
  readonly gateConfidence: number;
  readonly novelty: number;
  readonly motion: number;
  readonly stability: number;
  /** The context confidence that live events report. */
  readonly confidence: number;
  /** When its last packet came, epoch milliseconds. */
  readonly arrivedMs: number;
}

export interface LivePicture {
  readonly frame: FrameFacts;
  /** Moved, not copied; at most `LIMITS.live.jpegBytesMax`. */
  readonly jpeg: Uint8Array<ArrayBuffer>;
  /** Kept by the gate and not part of a loop: it is to be described. Costs a picture credit. */
  readonly isKeyframe: boolean;
  /** Activity entered the zone on this frame. Costs an evidence credit. */
  readonly zone: ZoneFacts | null;
  /** The trigger fired on this frame. Costs an evidence credit. */
  readonly trigger: TriggerFacts | null;
}

export interface ZoneFacts {
  readonly score: number;
  readonly threshold: number;
  readonly consecutiveFrames: number;
}

export interface TriggerFacts {
  /** Null where the frame had no such measurement. */
  readonly inputs: {
    readonly motion_score: number | null;
    readonly novelty_score: number | null;
    readonly confidence: number | null;
  };
}

/** Four seconds of one audio track. Contract 12.4. */
export interface OpusWindow {
  /** From 0, in the order of the offer. */
  readonly trackId: number;
  /** From 0, of the session. */
  readonly chunkIndex: number;
  readonly units: readonly Uint8Array<ArrayBuffer>[];
  /** Milliseconds from the track's first RTP time. */
  readonly startPtsMs: number;
  readonly endPtsMs: number;
}

/** What happened since the last report of this kind: all but the latencies are added up. */
export interface LiveCounts {
  readonly rtpFramesReceived: number;
  readonly framesDecoded: number;
  readonly framesDropped: number;
  readonly gateFramesAnalyzed: number;
  readonly gateKeyframesSelected: number;
  /** Kept frames that went nowhere: no credit, too large, part of a loop. */
  readonly keyframesDropped: number;
  readonly decodePendingSanityViolations: number;
  readonly zoneQueueDropped: number;
  readonly triggerQueueDropped: number;
  readonly triggerMissingSignal: number;
  readonly audioTracks: number;
  readonly audioAccessUnits: number;
  readonly audioBytes: number;
  readonly audioDurationMs: number;
  readonly audioReceiveErrors: number;
  readonly audioQueueDropped: number;
  /** One value a frame. */
  readonly decodeLatenciesUs: readonly number[];
  readonly gateLatenciesUs: readonly number[];
}
