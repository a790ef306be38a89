/** The answer to a WHIP offer. It is written here and not by a library, so that it promises only what is
 * implemented.
 */

import type { Offer, OfferedSection, ServedCodec } from "./offer.ts";

/** The transport on the side of this service. */
export interface AnswerTransport {
  /** The id of the SDP session: up to 19 digits. */
  readonly sessionId: string;
  readonly ufrag: string;
  readonly password: string;
  readonly fingerprint: { readonly algorithm: string; readonly value: string };
  readonly setup: "active" | "passive";
  /** The candidates of this service: `candidate:…` lines without `a=`. */
  readonly candidates: readonly string[];
}

/** The sections in the order of the offer: served ones are recvonly, the others are refused with port 0. */
export function writeAnswer(offer: Offer, transport: AnswerTransport): string {
  const served = offer.sections.filter((section) => section.served !== null);
  const lines = [
    "v=0",
    `o=- ${transport.sessionId} 2 IN IP4 127.0.0.1`,
    "s=-",
    "t=0 0",
    ...(offer.isBundled ? [`a=group:BUNDLE ${served.map(({ mid }) => mid).join(" ")}`] : []),
    ...offer.sections.flatMap((section) =>
      section.served ? servedLines(section, section.served, transport, section === served[0]) : [
        `m=${section.kind} 0 ${section.protocol} ${section.firstFormat}`,
        "c=IN IP4 0.0.0.0",
        `a=mid:${section.mid}`,
        "a=inactive",
      ]
    ),
  ];
  return `${lines.join("\r\n")}\r\n`;
}

/** The lines of a served section. Candidates are in the first one only: the others share its transport. */
function servedLines(
  section: OfferedSection,
  codec: ServedCodec,
  transport: AnswerTransport,
  isFirst: boolean,
): string[] {
  const { payloadType, rtxPayloadType } = codec;
  const formats = rtxPayloadType === null ? [payloadType] : [payloadType, rtxPayloadType];
  const fmtp = answeredFmtp(codec);
  return [
    `m=${section.kind} 9 ${section.protocol} ${formats.join(" ")}`,
    "c=IN IP4 0.0.0.0",
    "a=rtcp:9 IN IP4 0.0.0.0",
    `a=ice-ufrag:${transport.ufrag}`,
    `a=ice-pwd:${transport.password}`,
    "a=ice-options:trickle",
    `a=fingerprint:${transport.fingerprint.algorithm} ${transport.fingerprint.value}`,
    `a=setup:${transport.setup}`,
    `a=mid:${section.mid}`,
    ...(section.midExtension === null
      ? []
      : [`a=extmap:${section.midExtension} urn:ietf:params:rtp-hdrext:sdes:mid`]),
    "a=recvonly",
    "a=rtcp-mux",
    "a=rtcp-rsize",
    `a=rtpmap:${payloadType} ${codec.rtpmap}`,
    ...(fmtp === null ? [] : [`a=fmtp:${payloadType} ${fmtp}`]),
    ...answeredFeedback(section.kind, codec).map((feedback) => `a=rtcp-fb:${payloadType} ${feedback}`),
    ...(rtxPayloadType === null ? [] : [
      `a=rtpmap:${rtxPayloadType} rtx/${codec.clockRate}`,
      `a=fmtp:${rtxPayloadType} apt=${payloadType}`,
    ]),
    ...(isFirst ? [...transport.candidates.map((candidate) => `a=${candidate}`), "a=end-of-candidates"] : []),
  ];
}

/** The feedback messages that this service sends. */
const FEEDBACK = ["nack", "nack pli", "ccm fir", "goog-remb"];

function answeredFeedback(kind: string, codec: ServedCodec): string[] {
  return kind === "video" ? FEEDBACK.filter((feedback) => codec.feedback.includes(feedback)) : [];
}

/** The offered parameters without the parameter sets of the publisher. */
function answeredFmtp(codec: ServedCodec): string | null {
  const kept = (codec.fmtp ?? "").split(";").map((part) => part.trim())
    .filter((part) => part !== "" && !/^sprop-/i.test(part) && !/[^\x20-\x7e]/.test(part));
  return kept.length === 0 ? null : kept.join(";");
}
