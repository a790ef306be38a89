/** The messages between the HTTP thread and a live Worker: orders go to the Worker, reports come from it. */

import type { IpNetwork } from "../../base/ip_address.ts";
import type { MediaInput } from "../../media/input.ts";
import type { PictureSize } from "../../media/live/picture_sizes.ts";
import type { MediaInfo } from "../../media/media_info.ts";
import type { Extent, ImageCoordinates, NormalizedRegion } from "../../model/frames/coordinates.ts";
import type { DetectedRange } from "../../model/frames/detected_range.ts";
import { LIMITS } from "../../contract/limits.ts";
import type { CandidateSender } from "../../model/live/candidate.ts";
import type { ClipSettings } from "../../model/live/clip.ts";
import type { Offer } from "../../model/live/offer.ts";
import type { ClipCause } from "../../model/live/recording/causes.ts";
import type { ClipSoundState, RecordPlan } from "../../model/live/recording/record_plan.ts";
import type { StreamFormats } from "../../model/sources/recorded_segment.ts";
import type { GateReason, GateThresholds } from "../../model/frames/signals.ts";
import type { TriggerProgram } from "../../model/triggers/program.ts";
import type { RestrictedZone } from "../../model/policies/zone.ts";

/** Everything about one generation of a live session that is known before it starts and never changes. */
export interface SessionSettings {
  readonly sessionId: string;
  /** Number of the generation among all of the process, from 1. */
  readonly generation: number;
  readonly gateThresholds: GateThresholds;
  /** How many earlier frames novelty compares with. See docs/frames.md#context-pass. */
  readonly windowSize: number;
  /** The region of each frame that is analysed; with a zone, the zone's region. Null is the whole frame. */
  readonly crop: NormalizedRegion | null;
  readonly zone: RestrictedZone | null;
  readonly trigger: TriggerProgram | null;
  /** Clip mode: clips are reported instead of keyframes; null for none. See docs/live/events.md#clip-mode. */
  readonly clip: ClipSettings | null;
  /** Whether frames that the gate keeps are reported as pictures; false in clip mode. */
  readonly wantsKeyframes: boolean;
  readonly wantsAudio: boolean;
  /** Evidence clips, and the most encoded bytes that are kept for them; null for none. */
  readonly record: RecordPlan & { readonly bytesMax: number } | null;
  /**
   * Continuous recording: how long a segment is at least, and the most encoded bytes of one; null for none.
   */
  readonly recording: { readonly segmentMs: number; readonly bytesMax: number } | null;
  /** The size for which admission reserved memory. */
  readonly maxFrame: Extent;
  /**
   * Milliseconds without a media packet after which a publisher is ended, and milliseconds after its start in
   * which a pulled source must give a frame.
   */
  readonly mediaIdleMs: number;
  /** Whether the source is always watched: its end is a gap, as it may go on later. */
  readonly isAlwaysOn: boolean;
  readonly ice: IceSettings;
}

/** How the connection to a pulled source has ended. */
export interface SourceLoss {
  readonly reason: string;
  /** The time of the last frame before; null where there was none. */
  readonly lastPtsMs: number | null;
  /** Milliseconds since the last frame came. */
  readonly silentMs: number;
}

export interface IceSettings {
  /** Addresses of STUN servers, such as `stun:stun.example.org:3478`. */
  readonly stunServers: readonly string[];
  readonly turn: { readonly url: string; readonly username: string; readonly credential: string } | null;
  /** To which addresses of a publisher's candidates the service sends. See docs/live/whip.md#ice. */
  readonly candidates: { readonly listenHost: string; readonly allowedNetworks: readonly IpNetwork[] };
}

/** What a Worker needs before its first session. */
export interface LiveStart {
  /** The folder for the sockets through which programs are fed and read. */
  readonly socketDir: string;
}

/**
 * What the HTTP thread tells a Worker. `start` comes once, before all others, in answer to `ready`. Orders
 * for a session that has ended are ignored.
 */
export type LiveOrder =
  | { readonly kind: "start"; readonly start: LiveStart; readonly broker: MessagePort }
  | CandidateSender & {
    readonly kind: "offer";
    readonly settings: SessionSettings;
    readonly offer: Offer;
  }
  /** Opens a live input that ffmpeg reads itself. Sent again, with another input, after a `gap`. */
  | {
    readonly kind: "pull";
    readonly settings: SessionSettings;
    readonly input: MediaInput;
    readonly info: MediaInfo;
  }
  /**
   * Passes on a raw body with candidates: a candidate line or an RFC 8840 fragment; empty for the end of
   * candidates.
   */
  | CandidateSender & { readonly kind: "candidate"; readonly sessionId: string; readonly fragment: string }
  | CandidateSender & {
    readonly kind: "restart_ice";
    readonly sessionId: string;
    readonly fragment: string;
    readonly orderId: number;
  }
  /**
   * Says that the live view is watched, from the last key frame on. Sent again with the same id where a
   * viewer waits for a key frame. Null: it is not watched any more.
   */
  | { readonly kind: "watch"; readonly sessionId: string; readonly viewId: number | null }
  /** Says for an always-on camera whether what zone and trigger find from here on is an alarm. */
  | { readonly kind: "arm"; readonly sessionId: string; readonly isArmed: boolean }
  /**
   * Wants the next frame as a JPEG. Sent again only after its `snapshot`, or where a second has passed
   * without one.
   */
  | { readonly kind: "snapshot"; readonly sessionId: string }
  /**
   * Tells the size of pictures for which memory is reserved from here on. Sent where a `picture_size` was
   * larger, or the pictures of the next `pull` are. Where that is not granted, larger pictures are scaled
   * down.
   */
  | {
    readonly kind: "room";
    readonly sessionId: string;
    readonly picture: Extent;
    readonly isGranted: boolean;
  }
  /** Gives credits back: so many more reports that take one may follow. */
  | {
    readonly kind: "acknowledge";
    readonly sessionId: string;
    readonly credit: Credit;
    readonly count: number;
  }
  | { readonly kind: "close"; readonly sessionId: string };

/**
 * How many reports of a session may be unacknowledged: on their way, or being processed on the other side.
 */
export const CREDITS = {
  /** Keyframes; of clips there is one. */
  pictures: LIMITS.live.decodedFramesQueuedKeyframe,
  /** Pictures for a zone or a trigger. */
  evidence: LIMITS.live.evidenceQueued,
  audioWindows: LIMITS.live.audioWindowsQueued,
  /** Evidence clips. */
  recordings: LIMITS.evidence.clipsHeld,
  /** Fragments of the live view. */
  fragments: LIMITS.view.fragmentsQueued,
  /** Segments of the continuous recording. */
  segments: LIMITS.recording.segmentsHeld,
} as const;
export type Credit = keyof typeof CREDITS;

/**
 * What a Worker tells the HTTP thread. `ready` comes once, when the Worker has loaded and listens. All others
 * but `uncaught` belong to a session, and none comes for a session after its `closed`.
 */
export type LiveReport =
  | { readonly kind: "ready" }
  /** An error that no code caught. The session that caused it, null if that is unknown, continues. */
  | { readonly kind: "uncaught"; readonly sessionId: string | null; readonly message: string }
  | SessionReport;

export type SessionReport =
  | {
    readonly kind: "answered";
    readonly sessionId: string;
    readonly answer: string;
    readonly video: { readonly codec: string } | null;
    readonly audioTracks: number;
  }
  /** A fault: the offer cannot be answered; its resources are released, and no other report follows. */
  | { readonly kind: "refused"; readonly sessionId: string; readonly message: string }
  | { readonly kind: "connected"; readonly sessionId: string; readonly tookMs: number }
  | { readonly kind: "picture"; readonly sessionId: string; readonly picture: LivePicture }
  | { readonly kind: "loop_detected"; readonly sessionId: string; readonly frame: FrameFacts }
  /** A freeze, a black stretch or a flash has ended; frames and times are those of the session. */
  | { readonly kind: "range"; readonly sessionId: string; readonly range: DetectedRange }
  /**
   * One clip: its frames in order, and the facts of the last one. The next clip is made when this one is
   * acknowledged.
   */
  | {
    readonly kind: "clip";
    readonly sessionId: string;
    readonly frame: FrameFacts;
    /** Media time of the first frame. */
    readonly startPtsMs: number;
    readonly jpegs: readonly Uint8Array<ArrayBuffer>[];
  }
  | { readonly kind: "audio_window"; readonly sessionId: string; readonly window: AudioWindow }
  | { readonly kind: "recorded"; readonly sessionId: string; readonly clip: RecordedClip }
  | { readonly kind: "segment"; readonly sessionId: string; readonly segment: MadeSegment }
  | {
    readonly kind: "decoder_restarted";
    readonly sessionId: string;
    readonly reason: "stalled" | "exited";
    /** Media time of the last frame before. */
    readonly ptsMs: number;
    /** Restarts in this session so far, this one included. */
    readonly restarts: number;
  }
  /** A pulled source has ended; the session waits for another `pull` order or for `close`. */
  | { readonly kind: "gap"; readonly sessionId: string } & SourceLoss
  /** Says that the first frame after a gap has come. */
  | { readonly kind: "resumed"; readonly sessionId: string }
  /**
   * Says that packets of a pulled source could not be taken: clips, recording and live view are without them.
   * Sent once for each connection.
   */
  | { readonly kind: "packets_lost"; readonly sessionId: string; readonly reason: string }
  /**
   * Says that frames of this size follow; where it is larger than what is reserved, once a `room` order
   * grants it.
   */
  | { readonly kind: "picture_size"; readonly sessionId: string } & PictureSize
  | { readonly kind: "counts"; readonly sessionId: string; readonly counts: LiveCounts }
  | { readonly kind: "samples"; readonly sessionId: string; readonly samples: readonly SignalSample[] }
  | {
    readonly kind: "ice_restarted";
    readonly sessionId: string;
    readonly orderId: number;
    /** The fragment of the answer; null when the restart was not possible. */
    readonly fragment: string | null;
  }
  | { readonly kind: "snapshot"; readonly sessionId: string; readonly snapshot: Snapshot }
  | { readonly kind: "view"; readonly sessionId: string; readonly view: ViewReport }
  /** Says that the publisher, the source or a fault ended the session; `closed` follows without an order. */
  | {
    readonly kind: "ended";
    readonly sessionId: string;
    readonly cause: EndCause;
    readonly message: string;
    /** What failed, for the cause `worker_fault`. */
    readonly fault?: WorkerFault;
  }
  /** Says that all resources are released: processes, sockets, memory. */
  | { readonly kind: "closed"; readonly sessionId: string };

export type ReportOf<Kind extends SessionReport["kind"]> = Extract<SessionReport, { kind: Kind }>;

/** A message as a session writes it: its id is added when it is sent. */
export type WithoutSessionId<Message> = Message extends { sessionId: string } ? Omit<Message, "sessionId">
  : Message;

export const END_CAUSES = [
  "peer_disconnected",
  "peer_failed",
  "peer_closed",
  "media_idle",
  "worker_fault",
  "source_ended",
] as const;
export type EndCause = typeof END_CAUSES[number];

export interface WorkerFault {
  readonly stage: "decode" | "analysis" | "clip_accumulator";
  /** What kind of fault it is: `unexpected_exit` is that of ffmpeg or of the whole Worker, `panic` a bug. */
  readonly reason: "unexpected_exit" | "panic" | "spawn_failure";
}

/**
 * The frame of a report, and what was measured of it. See docs/frames.md#gate and
 * docs/frames.md#context-pass.
 */
export interface FrameFacts {
  /** Number of the frame: counts the session's access units from 0. */
  readonly frameIndex: number;
  /** Time of the frame, milliseconds: its RTP time / 90, an integer. */
  readonly ptsMs: number;
  readonly coordinates: ImageCoordinates;
  readonly gateReason: GateReason;
  readonly gateConfidence: number;
  readonly novelty: number;
  readonly motion: number;
  readonly stability: number;
  /** The context confidence that live events report. */
  readonly confidence: number;
  /** When the last packet of the frame came, epoch milliseconds. */
  readonly arrivedMs: number;
}

/** A frame as a JPEG, of the region that is analysed. */
export interface Snapshot {
  readonly ptsMs: number;
  /** When the last packet of the frame came, epoch milliseconds. */
  readonly arrivedMs: number;
  /** The picture: moved, not copied; at most `LIMITS.live.jpegBytesMax`. */
  readonly jpeg: Uint8Array<ArrayBuffer>;
}

/**
 * What comes of the live view, for the id of the order with which it is watched.
 * See docs/live/clips.md#live-view.
 */
export type ViewReport =
  /** The first part of an MP4: how the fragments from here on are read. */
  | {
    readonly kind: "began";
    readonly viewId: number;
    readonly init: Uint8Array<ArrayBuffer>;
    /** Codecs of all tracks by RFC 6381, such as `avc1.42e01f, opus`. */
    readonly codecs: string;
  }
  | {
    readonly kind: "fragment";
    readonly viewId: number;
    /** The fragment: moved, not copied. */
    readonly bytes: Uint8Array<ArrayBuffer>;
    /** Whether playing can begin with the fragment. */
    readonly isKeyframe: boolean;
  }
  /** Says that there is no view: MP4 cannot carry the codec, or there is no video (null). */
  | { readonly kind: "unable"; readonly viewId: number; readonly codec: string | null };

/** A frame as a JPEG, with the reasons why it is reported. */
export interface LivePicture {
  readonly frame: FrameFacts;
  /** The picture: moved, not copied; at most `LIMITS.live.jpegBytesMax`. */
  readonly jpeg: Uint8Array<ArrayBuffer>;
  /**
   * Whether the gate keeps the frame and it is not part of a loop, so that it is to be described. Costs a
   * picture credit.
   */
  readonly isKeyframe: boolean;
  /** Set when activity entered the zone on this frame. Costs an evidence credit. */
  readonly zone: ZoneFacts | null;
  /** Set when the trigger fired on this frame. Costs an evidence credit. */
  readonly trigger: TriggerFacts | null;
  /** Whether the camera was armed on this frame; null for a session that is neither armed nor disarmed. */
  readonly isArmed: boolean | null;
}

export interface ZoneFacts {
  readonly score: number;
  readonly threshold: number;
  readonly consecutiveFrames: number;
}

export interface TriggerFacts {
  /** What the frame measured for each signal of the trigger; null where it had no such measurement. */
  readonly inputs: {
    readonly motion_score: number | null;
    readonly novelty_score: number | null;
    readonly confidence: number | null;
  };
}

/** An evidence clip: the encoded stream around a cause. See docs/live/clips.md#evidence-clips. */
export interface RecordedClip {
  /** What began the clip; later causes only prolong it. */
  readonly cause: ClipCause;
  /** Number of the frame that is the cause. */
  readonly frameIndex: number;
  readonly causePtsMs: number;
  /** Media time of the first frame, milliseconds; `endPtsMs` is the end of the last one. */
  readonly startPtsMs: number;
  readonly endPtsMs: number;
  /** Codecs of all tracks by RFC 6381, such as `avc1.42e01f, opus`. */
  readonly codec: string;
  readonly sound: ClipSoundState;
  /** The file: moved, not copied. */
  readonly mp4: Uint8Array<ArrayBuffer>;
  /** The picture of the cause. Moved, not copied. */
  readonly jpeg: Uint8Array<ArrayBuffer>;
}

/** A segment of the continuous recording. See docs/cameras.md#recording. */
export interface MadeSegment {
  /**
   * Media time of the session in ticks of 90 kHz: of the first frame that is shown. `endTicks` is the end of
   * the last one.
   */
  readonly startTicks: number;
  readonly endTicks: number;
  /**
   * When the first frame is shown on the clock of this machine, epoch milliseconds; `endMs` is the end of the
   * last one.
   */
  readonly startMs: number;
  readonly endMs: number;
  /** Codecs of all tracks by RFC 6381, such as `avc1.42e01f, opus`. */
  readonly codec: string;
  readonly sound: ClipSoundState;
  readonly formats: StreamFormats;
  /** The file: moved, not copied. */
  readonly mp4: Uint8Array<ArrayBuffer>;
}

/** Four seconds of one audio track. See docs/live/events.md#live-audio. */
export interface AudioWindow {
  /** What `units` are: Opus packets, or blocks of 20 ms of samples (mono, 16 kHz, 16 bits). */
  readonly format: "opus" | "pcm";
  /** Number of the track, from 0, in the order of the offer. */
  readonly trackId: number;
  /** Number of the window in the session, from 0. */
  readonly chunkIndex: number;
  readonly units: readonly Uint8Array<ArrayBuffer>[];
  /** Start of the window, milliseconds from the track's first RTP time. */
  readonly startPtsMs: number;
  readonly endPtsMs: number;
}

/** The largest values that were measured of the frames of 100 ms. See docs/live.md#state-of-a-session. */
export interface SignalSample {
  /** Media time of the first frame, milliseconds. */
  readonly ptsMs: number;
  readonly motion: number;
  readonly novelty: number;
}

/** What happened since the last report of this kind; all fields but the latencies are sums. */
export interface LiveCounts {
  readonly rtpFramesReceived: number;
  readonly framesDecoded: number;
  readonly framesDropped: number;
  readonly gateFramesAnalyzed: number;
  readonly gateKeyframesSelected: number;
  /** Kept frames that were not reported: part of a loop, without a credit, or without a JPEG. */
  readonly keyframesLooping: number;
  readonly keyframesWithoutCredit: number;
  readonly keyframesNotEncoded: number;
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
  /** Evidence clips that were not made: too many at once, or the stream is not what it says. */
  readonly recordingsLost: number;
  /**
   * Fragments of the live view. `viewFragmentsLost` counts those that were not reported: too many at once.
   */
  readonly viewFragments: number;
  readonly viewFragmentsLost: number;
  /**
   * Segments of the continuous recording that were not made, for the same reasons as clips, or that ended
   * because a key frame came too late or a picture could not be taken.
   */
  readonly segmentsLost: number;
  /**
   * Microseconds of each frame from its last packet until its signals were computed; `gateLatenciesUs` are
   * the part that analysis took.
   */
  readonly decodeLatenciesUs: readonly number[];
  readonly gateLatenciesUs: readonly number[];
}
