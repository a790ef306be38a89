/** A WHIP offer, checked before anything is created for it: what is served of it, or why nothing is. */

import { type Refusal, refuse } from "../../contract/refusal.ts";
import { CANDIDATES_MAX, type IceCandidate, isPassword, isUfrag, readCandidate } from "./candidate.ts";
import { LIMITS } from "../../contract/limits.ts";
import { readSdp, type SdpAttributes, SdpFault, type SdpMedia, type SdpSession } from "./sdp.ts";

export type VideoCodec = "vp8" | "h264" | "h265" | "vp9" | "av1";

/** The payload type that the answer accepts. */
export interface ServedCodec {
  readonly payloadType: number;
  /** The value of `a=rtpmap`, for the answer: `H264/90000`. */
  readonly rtpmap: string;
  readonly clockRate: number;
  /** The offered value of `a=fmtp` without the payload type; null when there is none. */
  readonly fmtp: string | null;
  /** The payload type of the codec's retransmissions; null when there is none. */
  readonly rtxPayloadType: number | null;
  readonly feedback: readonly string[];
}

export interface OfferedSection {
  /** The index of the section in the offer; in the answer it is the same. */
  readonly index: number;
  readonly kind: string;
  readonly mid: string;
  readonly protocol: string;
  /** The first format of the section, which a refused one repeats. */
  readonly firstFormat: string;
  /** What is served of the section; null for one that the answer refuses. */
  readonly served: ServedCodec | null;
  /** Id of the header extension for the mid, or null. */
  readonly midExtension: number | null;
  /** The streams that the offer announces, without those of retransmissions. */
  readonly ssrcs: readonly number[];
}

export interface Offer {
  readonly sections: readonly OfferedSection[];
  readonly video: { readonly codec: VideoCodec; readonly section: OfferedSection } | null;
  /** The audio sections in the order of the offer; the index is the number of the track. */
  readonly audio: readonly OfferedSection[];
  readonly isBundled: boolean;
  readonly ice: { readonly ufrag: string; readonly password: string; readonly isLite: boolean };
  readonly fingerprints: readonly { readonly algorithm: string; readonly value: string }[];
  readonly setup: "active" | "passive" | "actpass";
  readonly candidates: readonly IceCandidate[];
  /** Parameter sets of the offer, Base64. A keyframe without its own gets them. */
  readonly parameterSets: readonly string[];
  /** Attributes that bound the size of pictures; `pictureBound` reads them. */
  readonly sizeHints: { readonly fmtp: string | null; readonly imageattr: string | null };
}

/** Audio sections that are served of one offer: as many as recorded media may have audio streams. */
const AUDIO_SECTIONS_MAX = LIMITS.mediaWindow.audioStreamsMax;

/** What a session needs of its offer. */
export interface OfferNeeds {
  /** Whether evidence clips are made: then only codecs of such clips are served, and there must be video. */
  readonly isRecorded?: boolean;
}

/**
 * Reads an offer. `decodes` lists the codecs besides VP8 and H.264 that can be decoded. See
 * docs/live/whip.md#codecs.
 *
 * Errors: 400 where there is no offer, it is not SDP, or not the SDP of a WebRTC publisher. 415: nothing in
 * the offer can be served, or it has more than one video.
 */
export function readOffer(text: string, decodes: ReadonlySet<VideoCodec>, needs: OfferNeeds = {}): Offer {
  if (text.trim() === "") throw emptyOffer();
  try {
    return servedOffer(readSdp(text), decodes, needs);
  } catch (error) {
    if (!(error instanceof SdpFault)) throw error;
    throw refuse.because("bad_request", `malformed offer: ${error.message}`);
  }
}

export function emptyOffer(): Refusal {
  return refuse.because("bad_request", "the offer is empty");
}

function servedOffer(
  session: SdpSession,
  decodes: ReadonlySet<VideoCodec>,
  { isRecorded = false }: OfferNeeds,
): Offer {
  const group = bundleOf(session);
  const active = session.media.filter(isActive);
  const videos = active.filter(({ kind }) => kind === "video");
  if (videos.length > 1) {
    throw notServed(`the offer has ${videos.length} video sections, at most 1 is served`);
  }
  const bundled = (media: SdpMedia) => group === null || group.includes(midOf(session, media));
  const video = videos.find((media) => bundled(media) && sends(media));
  const choice = video && videoChoice(video, decodes, isRecorded);
  if (isRecorded && !choice) {
    const offered = video ? codecNames(video) : "no video";
    throw notServed(
      `record needs H.264 or H.265, which MP4 carries to browsers, and the offer has ${offered}`,
    );
  }
  if (video && !choice) throw notServed(`no video codec of the offer is served: ${codecNames(video)}`);
  const audio = active
    .filter((media) => media.kind === "audio" && bundled(media) && sends(media) && opusOf(media) !== null)
    .slice(0, AUDIO_SECTIONS_MAX);
  // Without bundling every section has its own transport; only one of them is served.
  const servedMedia = [...(video ? [video] : []), ...audio].slice(0, group === null ? 1 : undefined);
  if (servedMedia.length === 0) throw notServed("the offer sends neither video nor Opus audio");
  const carrier = servedMedia[0]!;
  const sections = session.media.map((media, index) =>
    sectionOf(
      session,
      media,
      index,
      !servedMedia.includes(media) ? null : choice && media === video ? choice.served : opusOf(media),
    )
  );
  const sectionFor = (media: SdpMedia) => sections[session.media.indexOf(media)]!;
  const fmtp = choice?.served.fmtp ?? null;
  return {
    sections,
    video: choice && video ? { codec: choice.codec, section: sectionFor(video) } : null,
    audio: servedMedia.filter((media) => media !== video).map(sectionFor),
    isBundled: group !== null,
    ...transportOf(session, carrier),
    candidates: candidatesOf(session),
    parameterSets: choice ? parameterSetsOf(choice.codec, fmtp) : [],
    sizeHints: { fmtp, imageattr: (video && sentImage(video, choice!.served.payloadType)) ?? null },
  };
}

function notServed(message: string): Refusal {
  return refuse.because("unsupported_media_type", message);
}

/** The mids of the first bundle; null without one. */
function bundleOf(session: SdpSession): string[] | null {
  const bundle = session.attributes.all("group").map((value) => value.split(/ +/)).find((
    [semantics, first],
  ) => semantics === "BUNDLE" && first !== undefined);
  return bundle?.slice(1) ?? null;
}

/** Whether a section is in use. One of port 0 has been stopped, unless it is bundle-only. */
function isActive(media: SdpMedia): boolean {
  return media.port !== 0 || media.attributes.has("bundle-only");
}

function sends(media: SdpMedia): boolean {
  return /^(UDP|TCP)\/TLS\/RTP\/SAVPF?$/.test(media.protocol) &&
    !media.attributes.has("recvonly") && !media.attributes.has("inactive");
}

function midOf(session: SdpSession, media: SdpMedia): string {
  const mid = media.attributes.first("mid");
  if (mid === undefined || mid === "") return String(session.media.indexOf(media));
  if (!/^[\x21-\x7e]{1,64}$/.test(mid)) throw new SdpFault("a=mid is no token of at most 64 characters");
  return mid;
}

/**
 * The attributes of the transport, from the media section or else from the session. A missing one is a fault.
 */
function transportOf(session: SdpSession, media: SdpMedia): Pick<Offer, "ice" | "fingerprints" | "setup"> {
  const value = (name: string) => media.attributes.first(name) ?? session.attributes.first(name);
  const ufrag = value("ice-ufrag");
  const password = value("ice-pwd");
  if (!isUfrag(ufrag)) throw new SdpFault("a=ice-ufrag is missing or not 4 to 256 ICE characters");
  if (!isPassword(password)) throw new SdpFault("a=ice-pwd is missing or not 22 to 256 ICE characters");
  const setup = value("setup");
  if (setup !== "active" && setup !== "passive" && setup !== "actpass") {
    throw new SdpFault("a=setup is not one of active, passive, actpass");
  }
  const own = media.attributes.all("fingerprint");
  const fingerprints = (own.length > 0 ? own : session.attributes.all("fingerprint")).map(fingerprintOf);
  if (fingerprints.length === 0) throw new SdpFault("a=fingerprint is missing");
  return { ice: { ufrag, password, isLite: session.attributes.has("ice-lite") }, fingerprints, setup };
}

const FINGERPRINT_BYTES: Readonly<Record<string, number>> = {
  "sha-1": 20,
  "sha-224": 28,
  "sha-256": 32,
  "sha-384": 48,
  "sha-512": 64,
};

function fingerprintOf(line: string): { algorithm: string; value: string } {
  const [algorithm = "", value = ""] = line.toLowerCase().split(/ +/);
  const bytes = FINGERPRINT_BYTES[algorithm];
  if (bytes === undefined || value.length !== bytes * 3 - 1 || !/^[0-9a-f]{2}(:[0-9a-f]{2})*$/.test(value)) {
    throw new SdpFault("a=fingerprint is no SHA hash in hexadecimal");
  }
  return { algorithm, value: value.toUpperCase() };
}

function candidatesOf(session: SdpSession): IceCandidate[] {
  const lines = [session.attributes, ...session.media.map(({ attributes }) => attributes)]
    .flatMap((attributes) => attributes.all("candidate"));
  // A bundled offer repeats the candidates of its transport in every section.
  const read = [...new Set(lines)].map((line) => readCandidate(`candidate:${line}`));
  return read.filter((candidate) => candidate !== null).slice(0, CANDIDATES_MAX);
}

function sectionOf(
  session: SdpSession,
  media: SdpMedia,
  index: number,
  served: ServedCodec | null,
): OfferedSection {
  const extension = media.attributes.all("extmap").map((value) => /^(\d+)(?:\/\w+)? (\S+)/.exec(value))
    .find((match) => match?.[2] === "urn:ietf:params:rtp-hdrext:sdes:mid");
  return {
    index,
    kind: media.kind,
    mid: midOf(session, media),
    protocol: media.protocol,
    firstFormat: media.formats[0]!,
    served,
    midExtension: extension ? Number(extension[1]) : null,
    ssrcs: primarySsrcs(media.attributes),
  };
}

/** The streams of the section; only the first one of a group with retransmissions or error correction. */
function primarySsrcs(attributes: SdpAttributes): number[] {
  const repairs = attributes.all("ssrc-group").filter((group) => /^(FID|FEC-FR) /.test(group))
    .flatMap((group) => group.split(/ +/).slice(2));
  const named = attributes.all("ssrc").map((line) => line.split(" ")[0]!).filter((ssrc) =>
    /^\d{1,10}$/.test(ssrc)
  );
  return [...new Set(named).difference(new Set(repairs))].slice(0, 8).map(Number);
}

const CODEC_NAMES: Readonly<Record<string, VideoCodec>> = {
  VP8: "vp8",
  H264: "h264",
  H265: "h265",
  HEVC: "h265",
  VP9: "vp9",
  AV1: "av1",
};

/**
 * The order in which codecs are preferred. VP8 and H.264 have the same rank, so the order of the offer
 * decides between them.
 */
const RANK: Readonly<Record<VideoCodec, number>> = { vp8: 0, h264: 0, vp9: 1, h265: 2, av1: 3 };

function videoChoice(
  media: SdpMedia,
  decodes: ReadonlySet<VideoCodec>,
  isRecorded: boolean,
): { codec: VideoCodec; served: ServedCodec } | null {
  const choices = codecsOf(media).flatMap(({ name, served }) => {
    const codec = CODEC_NAMES[name.toUpperCase()];
    if (!codec || served.clockRate !== 90_000 || !isDepacketized(codec, served.fmtp)) return [];
    if (isRecorded && codec !== "h264" && codec !== "h265") return [];
    return RANK[codec] === 0 || decodes.has(codec) ? [{ codec, served }] : [];
  });
  return choices.sort((one, other) => RANK[one.codec] - RANK[other.codec])[0] ?? null;
}

/**
 * Whether access units are sent in the order in which they are decoded: not with interleaved H.264 or
 * reordered H.265.
 */
function isDepacketized(codec: VideoCodec, fmtp: string | null): boolean {
  if (codec === "h264") return Number(fmtpParameter(fmtp, "packetization-mode") ?? 0) < 2;
  if (codec !== "h265") return true;
  return ["sprop-max-don-diff", "sprop-depack-buf-nalus"].every((name) =>
    !(Number(fmtpParameter(fmtp, name) ?? 0) > 0)
  );
}

function opusOf(media: SdpMedia): ServedCodec | null {
  return codecsOf(media).find(({ name, served }) =>
    name.toLowerCase() === "opus" && served.clockRate === 48_000
  )
    ?.served ?? null;
}

function codecsOf(media: SdpMedia): { name: string; served: ServedCodec }[] {
  const rtpmaps = byPayloadType(media.attributes.all("rtpmap"));
  const fmtps = byPayloadType(media.attributes.all("fmtp"));
  const retransmissions = new Map<string | undefined, string>();
  for (const format of media.formats.toReversed()) {
    if (!/^rtx\//i.test(rtpmaps.get(format) ?? "")) continue;
    retransmissions.set(fmtpParameter(fmtps.get(format) ?? null, "apt"), format);
  }
  const feedback = media.attributes.all("rtcp-fb").flatMap((value) => {
    const [, format, kind] = /^(\S+) (.+)$/.exec(value) ?? [];
    return format && kind ? [{ format, kind: kind.trim() }] : [];
  });
  return media.formats.flatMap((format) => {
    const rtpmap = rtpmaps.get(format);
    const [name, clockRate] = (rtpmap ?? "").split("/");
    if (!/^\d{1,3}$/.test(format) || Number(format) > 127 || !rtpmap || !name) return [];
    const rtx = retransmissions.get(format);
    const served = {
      payloadType: Number(format),
      rtpmap,
      clockRate: Number(clockRate),
      fmtp: fmtps.get(format) ?? null,
      rtxPayloadType: rtx !== undefined && /^\d{1,3}$/.test(rtx) && Number(rtx) <= 127 ? Number(rtx) : null,
      feedback: feedback.filter((one) => one.format === format || one.format === "*").map(({ kind }) => kind),
    };
    return [{ name, served }];
  });
}

/** The first value of each payload type, of lines such as `96 VP8/90000`. */
function byPayloadType(values: readonly string[]): Map<string, string> {
  const found = new Map<string, string>();
  for (const value of values) {
    const space = value.indexOf(" ");
    const payloadType = value.slice(0, space);
    if (space > 0 && !found.has(payloadType)) found.set(payloadType, value.slice(space + 1).trim());
  }
  return found;
}

function codecNames(media: SdpMedia): string {
  const names = [...new Set(codecsOf(media).map(({ name }) => name.replace(/[^\w.-]/g, "")))];
  return names.slice(0, 12).join(", ").slice(0, 200) || "none is named";
}

/** The value of `name` in a text such as `a=1;b=2`; the case of names does not matter. */
export function fmtpParameter(fmtp: string | null, name: string): string | undefined {
  for (const part of (fmtp ?? "").split(";")) {
    const [own, ...value] = part.split("=");
    if (own!.trim().toLowerCase() === name) return value.join("=").trim();
  }
}

function parameterSetsOf(codec: VideoCodec, fmtp: string | null): string[] {
  const names = codec === "h264"
    ? ["sprop-parameter-sets"]
    : codec === "h265"
    ? ["sprop-vps", "sprop-sps", "sprop-pps"]
    : [];
  return names.flatMap((name) => fmtpParameter(fmtp, name)?.split(",") ?? [])
    .filter((set) => /^[A-Za-z0-9+/]{2,4096}={0,2}$/.test(set)).slice(0, 16);
}

/** The `send` part of `a=imageattr:<payload type or *> send [x=1280,y=720] recv …`. */
function sentImage(media: SdpMedia, payloadType: number): string | undefined {
  const line = media.attributes.all("imageattr").find((value) =>
    /^(\*|\d+) /.exec(value)?.[1] === "*" ||
    value.startsWith(`${payloadType} `)
  );
  return line && /\bsend ((?:\[[^\]]{0,256}\] ?)+)/.exec(line)?.[1];
}
