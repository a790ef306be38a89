/** Publishes a file with WHIP as a camera would: ffmpeg encodes it at its own pace, werift sends the packets.
 */

import type { WhipAnswer } from "../../../client/mod.ts";
import { CliError } from "../../failure.ts";
import type { Session } from "../../session.ts";
import { findFfmpeg } from "../ffmpeg.ts";
import { followRun } from "../watch.ts";
import { Encoder, type PlayedFile } from "./encoder.ts";
import { type Peer, PEER_DEADLINE_MS, startPeer } from "./peer.ts";

export interface Publication extends PlayedFile {
  /** How the session is to be watched. */
  readonly attach: object;
}

/** For the last packets to be asked for again. */
const LAST_PACKETS_MS = 500;

export async function publishFile(session: Session, publication: Publication): Promise<void> {
  const { out, signal } = session;
  await checkFile(publication.path);
  const ffmpeg = await findFfmpeg();
  await using encoder = await Encoder.open(ffmpeg, publication);
  const client = await session.client();
  await using peer = await startPeer(encoder.hasSound);
  const answer = await client.whipOffer(peer.offer, publication.attach as Record<string, unknown>, {
    signal,
  });
  const { sessionId } = answer;
  const runId = answer.runId!;
  try {
    await connect(peer, answer, signal);
    out.note(`${runId} receives ${publication.path}; Ctrl-C ends it`);
    const following = followRun(session, runId, {});
    // A failure of the encoder goes first; it ends the session, and with that what is followed.
    following.catch(() => {});
    encoder.start(peer);
    await Promise.race([encoder.ended, following]);
    if (!signal.aborted) await new Promise((resolve) => setTimeout(resolve, LAST_PACKETS_MS));
    await client.whipTerminate(sessionId);
    await following;
  } finally {
    // Done again it changes nothing.
    await client.whipTerminate(sessionId)
      .catch(() => out.warn(`${runId} could not be ended; \`runs stop ${runId}\` does it`));
    out.note(`${runId} is kept; \`runs rm ${runId}\` removes it`);
  }
}

/** Before a run is made for it. */
async function checkFile(path: string): Promise<void> {
  try {
    if ((await Deno.stat(path)).isFile) return;
  } catch (error) {
    throw new CliError("failed", `cannot read ${path}: ${(error as Error).message}`);
  }
  throw new CliError("invalid", `${path} is no file`);
}

async function connect(peer: Peer, { answerSdp }: WhipAnswer, signal: AbortSignal): Promise<void> {
  const isConnected = await peer.connect(answerSdp, signal);
  signal.throwIfAborted();
  if (isConnected) return;
  throw new CliError(
    "unreachable",
    `no WebRTC connection within ${PEER_DEADLINE_MS / 1000} s`,
    "UDP between this machine and the server has to pass; a server behind NAT needs STUN or TURN",
  );
}
