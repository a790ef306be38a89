/** ICE candidates and trickle fragments as text, of the publisher and of this service. */

export interface IceCandidate {
  readonly foundation: string;
  readonly component: number;
  readonly priority: number;
  readonly address: string;
  readonly port: number;
  readonly type: "host" | "srflx" | "prflx" | "relay";
  /** The username fragment to which the candidate belongs, if the publisher names one. */
  readonly ufrag: string | null;
}

/**
 * Who sends candidates. Between this machine and a sender on another one, an address of loopback is of no
 * use, whoever names it.
 */
export interface CandidateSender {
  readonly isOnLoopback: boolean;
}

/** A body of the ICE route. A restart has new credentials; unknown lines are ignored. */
export interface TrickleFragment {
  readonly credentials: { readonly ufrag: string; readonly password: string } | null;
  readonly candidates: readonly IceCandidate[];
  readonly isEnd: boolean;
}

/**
 * Candidates that are used of one text. For each one, checks are sent to an address that the publisher chose.
 */
export const CANDIDATES_MAX = 32;

const CANDIDATE =
  /^candidate:(\S{1,64}) (\d{1,3}) (\S+) (\d{1,10}) (\S{1,255}) (\d{1,5}) typ (host|srflx|prflx|relay)(?: (.*))?$/i;
const ICE_CHARACTERS = /^[A-Za-z0-9+/=_-]+$/;

/**
 * Reads one `candidate:` line, with or without its `a=`. Null for one that cannot be used: TCP, the component
 * of RTCP, or a host name (`….local` hides the address of a browser, which is learned from its checks
 * instead).
 */
export function readCandidate(line: string): IceCandidate | null {
  const match = CANDIDATE.exec(line.trim().replace(/^a=/i, ""));
  if (!match) return null;
  const [, foundation, component, transport, priority, address, port, type, rest] = match;
  if (transport!.toLowerCase() !== "udp" || Number(component) !== 1) return null;
  if (!isAddress(address!) || Number(port) < 1 || Number(port) > 65_535) return null;
  return {
    foundation: foundation!,
    component: 1,
    priority: Math.min(Number(priority), 2 ** 32 - 1),
    address: address!,
    port: Number(port),
    type: type!.toLowerCase() as IceCandidate["type"],
    ufrag: /(?:^| )ufrag (\S+)/.exec(rest ?? "")?.[1] ?? null,
  };
}

/**
 * Reads a body of the ICE route (RFC 8840 and 9725): credentials, `m=`, `a=mid`, candidates, end of
 * candidates; or one bare line. An empty body is the end of candidates.
 */
export function readTrickle(body: string): TrickleFragment {
  const lines = body.split(/\r\n|\n|\r/).map((line) => line.trim()).filter((line) => line !== "");
  const candidates = lines.map(readCandidate).filter((candidate) => candidate !== null);
  const ufrag = valueOf(lines, "ice-ufrag");
  const password = valueOf(lines, "ice-pwd");
  return {
    credentials: isUfrag(ufrag) && isPassword(password) ? { ufrag, password } : null,
    candidates: candidates.slice(0, CANDIDATES_MAX),
    isEnd: lines.length === 0 || lines.some((line) => /^(a=)?end-of-candidates$/i.test(line)),
  };
}

/** The body that answers an ICE restart: new credentials and candidates of this service. */
export function writeTrickle(
  fragment: { ufrag: string; password: string; mid: string; kind: string; candidates: readonly string[] },
): string {
  return [
    `a=ice-ufrag:${fragment.ufrag}`,
    `a=ice-pwd:${fragment.password}`,
    `m=${fragment.kind} 9 UDP/TLS/RTP/SAVPF 0`,
    `a=mid:${fragment.mid}`,
    ...fragment.candidates.map((candidate) => `a=${candidate}`),
    "a=end-of-candidates",
    "",
  ].join("\r\n");
}

/**
 * Whether a text is a user name of ICE (RFC 8839): 4 to 256 ICE characters. `-`, `_` and `=` are accepted
 * too, as some publishers use them.
 */
export function isUfrag(text: string | undefined): text is string {
  return text !== undefined && text.length >= 4 && text.length <= 256 && ICE_CHARACTERS.test(text);
}

/** Whether a text is a password of ICE (RFC 8839): 22 to 256 characters. */
export function isPassword(text: string | undefined): text is string {
  return text !== undefined && text.length >= 22 && text.length <= 256 && ICE_CHARACTERS.test(text);
}

function valueOf(lines: readonly string[], name: string): string | undefined {
  return lines.find((line) => line.startsWith(`a=${name}:`))?.slice(name.length + 3);
}

function isAddress(text: string): boolean {
  if (/^\d{1,3}(\.\d{1,3}){3}$/.test(text)) return text.split(".").every((part) => Number(part) <= 255);
  return text.includes(":") && /^[0-9a-f:]+(\d{1,3}(\.\d{1,3}){3})?$/i.test(text) && text.length <= 45;
}
