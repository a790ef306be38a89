/** SDP fragments of trickle ICE (RFC 8840): those that a publisher sends, and what one of the service says.
 */

import type { IceCandidate } from "./rtc.ts";

export interface Credentials {
  readonly ufrag: string;
  readonly password: string;
}

/** The ICE credentials of a description or a fragment; undefined where it has none. */
export function credentialsOf(sdp: string): Credentials | undefined {
  const ufrag = lineOf(sdp, "a=ice-ufrag:");
  const password = lineOf(sdp, "a=ice-pwd:");
  return ufrag && password ? { ufrag, password } : undefined;
}

/** A fragment with these candidates, grouped by their section; null stands for the end of candidates. */
export function fragmentOf(
  sdp: string,
  candidates: readonly (IceCandidate | null)[],
): string {
  const { ufrag, password } = credentialsOf(sdp) ?? { ufrag: "", password: "" };
  const lines = [`a=ice-ufrag:${ufrag}`, `a=ice-pwd:${password}`];
  const [firstMid = "0"] = sectionsOf(sdp).keys();
  const byMid = new Map<string, string[]>();
  for (const candidate of candidates) {
    const mid = candidate?.sdpMid ?? firstMid;
    const line = candidate ? `a=${candidate.candidate}` : "a=end-of-candidates";
    byMid.set(mid, [...byMid.get(mid) ?? [], line]);
  }
  for (const [mid, own] of byMid) {
    lines.push(
      sectionsOf(sdp).get(mid) ?? "m=video 9 UDP/TLS/RTP/SAVPF 0",
      `a=mid:${mid}`,
      ...own,
    );
  }
  return `${lines.join("\r\n")}\r\n`;
}

/**
 * The answer of the session with the credentials and the candidates of the service's fragment in place of its
 * own.
 */
export function restartedAnswer(answer: string, fragment: string): string {
  const { ufrag, password } = credentialsOf(fragment) ?? {};
  if (!ufrag || !password) {
    throw new Error("the answer to an ICE restart has no credentials");
  }
  const candidates = fragment.split(/\r?\n/).filter((line) => /^a=(candidate:|end-of-candidates)/.test(line));
  const kept = answer.split(/\r?\n/).filter((line) =>
    line !== "" && !/^a=(candidate:|end-of-candidates)/.test(line)
  );
  const first = kept.findIndex((line) => line.startsWith("m="));
  const next = kept.findIndex((line, index) => index > first && line.startsWith("m="));
  kept.splice(next < 0 ? kept.length : next, 0, ...candidates);
  return kept.map((line) =>
    line.replace(/^a=ice-ufrag:.*/, () => `a=ice-ufrag:${ufrag}`).replace(
      /^a=ice-pwd:.*/,
      () => `a=ice-pwd:${password}`,
    )
  ).join("\r\n") + "\r\n";
}

/** The first line of each section, by its `mid`. */
function sectionsOf(sdp: string): Map<string, string> {
  return new Map(
    sdp.split(/\r?\n(?=m=)/).slice(1).flatMap((section) => {
      const mid = lineOf(section, "a=mid:");
      return mid === undefined ? [] : [[mid, section.split(/\r?\n/, 1)[0]!]];
    }),
  );
}

function lineOf(sdp: string, start: string): string | undefined {
  return sdp.split(/\r?\n/).find((line) => line.startsWith(start))?.slice(
    start.length,
  ).trim();
}
