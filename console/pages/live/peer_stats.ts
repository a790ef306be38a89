/** What the browser tells of the connection to the service, once a second. */

import { useEffect, useState } from "preact/hooks";

export interface PeerStats {
  /** `udp, host to host`; null until a pair of addresses works. */
  readonly route: string | null;
  readonly roundTripMs: number | null;
  /** Of what is sent, bits a second. */
  readonly bitrate: number | null;
  /** What the service lets through, bits a second. */
  readonly available: number | null;
  readonly framesPerSecond: number | null;
  readonly size: string | null;
  readonly codec: string | null;
  /** What keeps the picture small or slow: `cpu`, `bandwidth`; null for nothing. */
  readonly limitedBy: string | null;
  /** Packets that the service has reported as lost, and how many were sent again. */
  readonly lost: number;
  readonly resent: number;
  readonly keyFramesAsked: number;
}

const EVERY_MS = 1_000;

/** Any of the statistics of WebRTC; all fields but the first two are those of one type or another. */
type Stat = RTCStats & Readonly<Record<string, unknown>>;

/** Null before the first, and without a connection. */
export function usePeerStats(
  peer: Pick<RTCPeerConnection, "getStats"> | null,
): PeerStats | null {
  const [stats, setStats] = useState<PeerStats | null>(null);
  useEffect(() => {
    setStats(null);
    if (!peer) return;
    let before: { bytes: number; atMs: number } | null = null;
    let isOver = false;
    const look = async () => {
      const report = await peer.getStats().catch(() => null);
      if (!report || isOver) return;
      const all = [...report.values()] as Stat[];
      const sent = all.find(({ type, kind }) => type === "outbound-rtp" && kind === "video");
      const bytes = numberOf(sent, "bytesSent");
      const atMs = performance.now();
      const bitrate = before && bytes !== null
        ? Math.max(0, (bytes - before.bytes) * 8_000 / (atMs - before.atMs))
        : null;
      before = bytes === null ? null : { bytes, atMs };
      setStats(statsOf(all, sent, bitrate));
    };
    void look();
    const timer = setInterval(look, EVERY_MS);
    return () => {
      isOver = true;
      clearInterval(timer);
    };
  }, [peer]);
  return stats;
}

function statsOf(
  all: readonly Stat[],
  sent: Stat | undefined,
  bitrate: number | null,
): PeerStats {
  const byId = (id: unknown) => all.find((stat) => stat.id === id);
  const transport = all.find(({ type }) => type === "transport");
  const pair = byId(transport?.selectedCandidatePairId) ??
    all.find(({ type, nominated, state }) => type === "candidate-pair" && nominated && state === "succeeded");
  const [local, remote] = [
    byId(pair?.localCandidateId),
    byId(pair?.remoteCandidateId),
  ];
  const heard = all.find(({ type, kind }) => type === "remote-inbound-rtp" && kind === "video");
  const codec = byId(sent?.codecId);
  const [width, height] = [
    numberOf(sent, "frameWidth"),
    numberOf(sent, "frameHeight"),
  ];
  const seconds = numberOf(pair, "currentRoundTripTime") ??
    numberOf(heard, "roundTripTime");
  const limit = sent?.qualityLimitationReason;
  return {
    route: local && remote ? `${local.protocol}, ${local.candidateType} to ${remote.candidateType}` : null,
    roundTripMs: seconds === null ? null : seconds * 1000,
    bitrate,
    available: numberOf(pair, "availableOutgoingBitrate"),
    framesPerSecond: numberOf(sent, "framesPerSecond"),
    size: width && height ? `${width}×${height}` : null,
    codec: typeof codec?.mimeType === "string" ? codec.mimeType.replace("video/", "") : null,
    limitedBy: typeof limit === "string" && limit !== "none" ? limit : null,
    lost: numberOf(heard, "packetsLost") ?? 0,
    resent: numberOf(sent, "retransmittedPacketsSent") ?? 0,
    keyFramesAsked: (numberOf(sent, "pliCount") ?? 0) +
      (numberOf(sent, "firCount") ?? 0),
  };
}

function numberOf(stat: Stat | undefined, name: string): number | null {
  const value = stat?.[name];
  return typeof value === "number" && Number.isFinite(value) ? value : null;
}
