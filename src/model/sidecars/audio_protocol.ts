/** The binary protocol between the service and the audio sidecar; both sides use this file. See
 * docs/protocols.md#audio-sidecar.
 */

import { errorText } from "../../base/log.ts";
import { decode, encode } from "@msgpack/msgpack";
import * as z from "zod";
import { utf8Length } from "../../base/bytes.ts";
import { LIMITS } from "../../contract/limits.ts";
import { isWithinLevels } from "./message_pack_depth.ts";
import {
  AUDIO_PROFILES,
  type AudioProfile,
  type LocalAudio,
  localAudioAnswer,
  SIDECAR_FAILURES,
  type SidecarCapacity,
  sidecarCapacity,
  type SidecarFailure,
  SPEECH_ENGINES,
  type SpeechEngine,
} from "./local_audio.ts";

/*
 * Request: 32 bytes, then audio, then text. All numbers big-endian.
 *
 *   0    V X A U                      12  source start, ms, u64
 *   4    version 1                    20  length of the audio, u32
 *   5    operation                    24  length of the text, u32
 *   6    profile                      28  most observations, u16
 *   7    engine                       30  least confidence, ten-thousandths, u16
 *   8    flags 0, reserved 0
 *
 * Response: 16 bytes, then MessagePack, then audio.
 *
 *   0    V X A R                      8   length of the MessagePack, u32
 *   4    version 1                    12  length of the audio, u32
 *   5    status, reserved 0
 */
export const REQUEST_HEADER_BYTES = 32;
export const RESPONSE_HEADER_BYTES = 16;

const REQUEST_MAGIC = 0x56584155;
const RESPONSE_MAGIC = 0x56584152;
const VERSION = 1;
const ANALYZE = 1;
const SYNTHESIZE = 2;
const CONFIDENCE_STEPS = 10_000;

/** The statuses of a response; the index in the list is the number on the wire. */
export const STATUSES = ["ok", "bad_request", "inference_error", "overloaded"] as const;
export type Status = typeof STATUSES[number];

/**
 * The error of bytes that break the protocol. The start of the next message is then unknown, so the
 * connection must be closed.
 */
export class ProtocolFault extends Error {
  override readonly name = "ProtocolFault";
}

export interface AnalyzeRequest {
  readonly operation: "analyze";
  readonly profile: AudioProfile;
  readonly engine: SpeechEngine;
  /** The start of the window in its source. */
  readonly sourceStartMs: number;
  readonly maxEvents: number;
  /** The least confidence, in [0,1]; transmitted with four decimals. */
  readonly minConfidence: number;
}

export interface SynthesizeRequest {
  readonly operation: "synthesize";
}

/** The header of a request. */
export type RequestHeader = (AnalyzeRequest | SynthesizeRequest) & {
  readonly audioBytes: number;
  readonly textBytes: number;
};

/** The whole request for one window: `wav` is at most 4 MiB, mono, 16-bit. */
export function encodeAnalyze(request: Omit<AnalyzeRequest, "operation">, wav: Uint8Array): Uint8Array[] {
  const header = requestHeader(ANALYZE, request.profile, request.engine);
  header.setBigUint64(12, BigInt(Math.round(request.sourceStartMs)));
  header.setUint32(20, wav.length);
  header.setUint16(28, request.maxEvents);
  header.setUint16(30, Math.round(request.minConfidence * CONFIDENCE_STEPS));
  return [new Uint8Array(header.buffer), wav];
}

/**
 * The whole request for a spoken text of at most 16 KiB of UTF-8. Profile and engine have no meaning but must
 * be valid.
 */
export function encodeSynthesize(text: string): Uint8Array[] {
  const header = requestHeader(SYNTHESIZE, "screen_recording", "lfm2_5_audio");
  header.setUint32(24, utf8Length(text));
  header.setUint16(28, LIMITS.localAudio.events.minimum);
  return [new Uint8Array(header.buffer), new TextEncoder().encode(text)];
}

/** Reads the 32 bytes of a header. Throws a {@link ProtocolFault} that names the field. */
export function decodeRequestHeader(bytes: Uint8Array): RequestHeader {
  const view = viewOf(bytes);
  expect(view.getUint32(0), REQUEST_MAGIC, "the magic");
  expect(view.getUint8(4), VERSION, "the version");
  const profile = listed(AUDIO_PROFILES, view.getUint8(6), "the profile");
  const engine = listed(SPEECH_ENGINES, view.getUint8(7), "the engine");
  expect(view.getUint16(8), 0, "the flags");
  expect(view.getUint16(10), 0, "the reserved bytes");
  const sourceStartMs = Number(view.getBigUint64(12));
  const audioBytes = view.getUint32(20);
  const textBytes = view.getUint32(24);
  switch (view.getUint8(5)) {
    case ANALYZE: {
      const { minimum, maximum } = LIMITS.localAudio.events;
      return {
        operation: "analyze",
        profile,
        engine,
        sourceStartMs,
        maxEvents: within(view.getUint16(28), minimum, maximum, "the most observations"),
        minConfidence: within(view.getUint16(30), 0, CONFIDENCE_STEPS, "the least confidence") /
          CONFIDENCE_STEPS,
        audioBytes: within(audioBytes, 1, LIMITS.localAudio.wavBytesMax, "the length of the audio"),
        textBytes: within(textBytes, 0, 0, "the length of the text"),
      };
    }
    case SYNTHESIZE:
      return {
        operation: "synthesize",
        audioBytes: within(audioBytes, 0, 0, "the length of the audio"),
        textBytes: within(textBytes, 1, LIMITS.sidecar.speechTextBytesMax, "the length of the text"),
      };
    default:
      throw new ProtocolFault(
        `Cannot read a request whose operation is not 1 or 2: got ${view.getUint8(5)}`,
      );
  }
}

/** The header of a response. */
export interface ResponseHeader {
  readonly status: Status;
  readonly metadataBytes: number;
  readonly audioBytes: number;
}

/** The metadata of a successful synthesis. */
export const speechAnswer = z.strictObject({
  model: z.string().min(1).refine((text) => utf8Length(text) <= LIMITS.sidecar.modelBytesMax),
  sample_rate_hz: z.int().min(1),
  processing_ms: z.number().nonnegative(),
  capacity: sidecarCapacity,
});
export type SpeechAnswer = z.infer<typeof speechAnswer>;

/** The metadata of a failed request; an unknown reason counts as `inference`. */
const failureAnswer = z.object({
  reason: z.string().transform((text): SidecarFailure =>
    SIDECAR_FAILURES.find((reason) => reason === text) ?? "inference"
  ),
  message: z.string(),
  capacity: sidecarCapacity.nullish(),
});
export interface FailureAnswer {
  readonly reason: SidecarFailure;
  readonly message: string;
  readonly capacity?: SidecarCapacity | null | undefined;
}

/** The whole response: metadata in MessagePack and, after a synthesis, a WAV. */
export function encodeResponse(
  status: Status,
  metadata: LocalAudio | SpeechAnswer | FailureAnswer,
  audio: Uint8Array = new Uint8Array(),
): Uint8Array[] {
  const packed = encode(metadata, { ignoreUndefined: true });
  const header = new DataView(new ArrayBuffer(RESPONSE_HEADER_BYTES));
  header.setUint32(0, RESPONSE_MAGIC);
  header.setUint8(4, VERSION);
  header.setUint8(5, STATUSES.indexOf(status));
  header.setUint32(8, packed.length);
  header.setUint32(12, audio.length);
  return [new Uint8Array(header.buffer), packed, audio];
}

/**
 * Reads the 16 bytes of a header; the reserved bytes are ignored. Throws a {@link ProtocolFault} that names
 * the field.
 */
export function decodeResponseHeader(bytes: Uint8Array): ResponseHeader {
  const view = viewOf(bytes);
  expect(view.getUint32(0), RESPONSE_MAGIC, "the magic");
  expect(view.getUint8(4), VERSION, "the version");
  const metadataBytesMax = LIMITS.sidecar.metadataBytesMax;
  const audioBytesMax = LIMITS.sidecar.audioBytesMax;
  return {
    status: listed(STATUSES, view.getUint8(5), "the status"),
    metadataBytes: within(view.getUint32(8), 1, metadataBytesMax, "the length of the metadata"),
    audioBytes: within(view.getUint32(12), 0, audioBytesMax, "the length of the audio"),
  };
}

/**
 * Reads an analysis. Throws a {@link ProtocolFault} that names the key and the rule, but not the content of
 * the answer.
 */
export function decodeAnalysis(packed: Uint8Array): LocalAudio {
  return unpacked(localAudioAnswer, packed);
}

/** Reads the metadata of speech. Throws as {@link decodeAnalysis} does. */
export function decodeSpeech(packed: Uint8Array): SpeechAnswer {
  return unpacked(speechAnswer, packed);
}

/** Reads the metadata of a failure. Throws as {@link decodeAnalysis} does. */
export function decodeFailure(packed: Uint8Array): FailureAnswer {
  return unpacked(failureAnswer, packed);
}

/**
 * Lengths of texts, lists and maps: those that are longer than in any valid answer are refused before they
 * are built.
 */
const DECODE_LIMITS = {
  maxStrLength: LIMITS.sidecar.transcriptBytesMax,
  maxArrayLength: LIMITS.sidecar.observationsMax,
  maxMapLength: 32,
  maxBinLength: 0,
  maxExtLength: 0,
};

/**
 * How deep lists and maps may lie in each other: a valid answer has a list of maps in a map, and a later
 * version may have more.
 */
const LEVELS_MAX = 8;

function unpacked<T>(schema: z.ZodType<T>, packed: Uint8Array): T {
  if (!isWithinLevels(packed, LEVELS_MAX)) {
    throw new ProtocolFault(`Cannot read the metadata as it has more than ${LEVELS_MAX} levels`);
  }
  let value: unknown;
  try {
    value = decode(packed, DECODE_LIMITS);
  } catch (error) {
    const reason = errorText(error);
    throw new ProtocolFault(`Cannot read the metadata as it is no MessagePack map of this size: ${reason}`);
  }
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const { path, message } = result.error.issues[0]!;
  throw new ProtocolFault(`Cannot take the metadata: ${path.length > 0 ? path.join(".") : "it"}: ${message}`);
}

function requestHeader(operation: number, profile: AudioProfile, engine: SpeechEngine) {
  const view = new DataView(new ArrayBuffer(REQUEST_HEADER_BYTES));
  view.setUint32(0, REQUEST_MAGIC);
  view.setUint8(4, VERSION);
  view.setUint8(5, operation);
  view.setUint8(6, AUDIO_PROFILES.indexOf(profile));
  view.setUint8(7, SPEECH_ENGINES.indexOf(engine));
  return view;
}

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

function expect(got: number, wanted: number, what: string): void {
  if (got !== wanted) {
    throw new ProtocolFault(`Cannot read a message as ${what} must be ${wanted}: got ${got}`);
  }
}

function listed<T>(list: readonly T[], index: number, what: string): T {
  within(index, 0, list.length - 1, what);
  return list[index]!;
}

function within(value: number, minimum: number, maximum: number, what: string): number {
  if (value >= minimum && value <= maximum) return value;
  throw new ProtocolFault(
    `Cannot read a message as ${what} must lie in [${minimum}, ${maximum}]: got ${value}`,
  );
}
