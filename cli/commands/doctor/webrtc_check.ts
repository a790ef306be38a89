/** Opens a live session and ends it again, to see whether WebRTC gets through. */

import { failureOf } from "../../failure.ts";
import type { Session } from "../../session.ts";
import { failure, type Finding, ok, warning } from "./finding.ts";

export async function tryWebRtc(session: Session): Promise<Finding> {
  const { signal, settings } = session;
  const check = "WebRTC";
  const client = await session.client({ maxRetries: 0 });
  const { startPeer } = await import("../live/peer.ts");
  await using peer = await startPeer(false);
  let answer;
  try {
    answer = await client.whipOffer(peer.offer, undefined, { signal });
  } catch (error) {
    signal.throwIfAborted();
    const { message, exit } = failureOf(error, settings.url);
    const advice = "docs/live/whip.md lists why an offer is refused";
    return exit === "server" ? warning(check, message, advice) : failure(check, message, advice);
  }
  try {
    const startMs = performance.now();
    const isConnected = await peer.connect(answer.answerSdp, signal);
    signal.throwIfAborted();
    const codecs = [...answer.answerSdp.matchAll(/^a=rtpmap:\d+ (\w+)\/90000/gm)].map(([, name]) => name)
      .filter((name) => name !== "rtx");
    return isConnected
      ? ok(
        check,
        `connected in ${Math.round(performance.now() - startMs)} ms, ${codecs.join(", ")} was taken`,
      )
      : failure(
        check,
        "no connection: ICE or DTLS did not get through",
        "let UDP pass between here and the server, or set STUN and TURN servers there; docs/live/whip.md has the settings",
      );
  } finally {
    await client.whipTerminate(answer.sessionId).catch(() => {});
    if (answer.runId !== undefined) await client.deleteRun(answer.runId).catch(() => {});
  }
}
