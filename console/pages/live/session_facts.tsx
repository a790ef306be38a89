/** Numbers of an open session: frames at the service, and for what this tab publishes, its connection. */

import { useRef } from "preact/hooks";
import type { WatchedSession } from "../../../client/mod.ts";
import { countText } from "../../text/numbers.ts";
import { dateAndClock, durationText } from "../../text/time.ts";
import { Id } from "../../ui/value.tsx";
import type { PeerStats } from "./peer_stats.ts";

export function SessionFacts({ session }: { session: WatchedSession }) {
  const { frames, source, source_uri } = session;
  const rate = useFrameRate(frames.decoded);
  return (
    <section aria-labelledby="live-service">
      <h2 id="live-service">At the service</h2>
      <dl class="facts number">
        <dt>Session</dt>
        <dd>
          <Id value={session.session_id} /> generation {session.generation}
        </dd>
        {source_uri !== "" && (
          <>
            <dt>Address</dt>
            <dd>{withoutPassword(source_uri)}</dd>
          </>
        )}
        <dt>Since</dt>
        <dd>{dateAndClock(session.connected_at_ms ?? session.opened_at_ms)}</dd>
        <dt>Decoded</dt>
        <dd>
          {countText(frames.decoded)} frames{rate !== null && `, ${Math.round(rate)} a second`}
        </dd>
        <dt>Kept</dt>
        <dd>
          {countText(frames.kept)} frames that differ from what was kept before
        </dd>
        <dt>Dropped</dt>
        <dd>
          {countText(frames.dropped)}
          {source === "whip" && ` of ${countText(frames.received)} received`}
        </dd>
      </dl>
    </section>
  );
}

export function ConnectionFacts(
  { stats, state }: { stats: PeerStats | null; state: string },
) {
  return (
    <section aria-labelledby="live-connection">
      <h2 id="live-connection">Your connection</h2>
      <dl class="facts number">
        <dt>State</dt>
        <dd>{state}</dd>
        <Fact name="Route (ICE)" value={stats?.route} />
        <Fact
          name="Round trip"
          value={stats?.roundTripMs == null ? null : durationText(stats.roundTripMs)}
        />
        <Fact
          name="Sent"
          value={stats?.bitrate == null ? null : bitrateText(stats.bitrate)}
        />
        <Fact
          name="Room for"
          value={stats?.available == null ? null : bitrateText(stats.available)}
        />
        <Fact
          name="Picture"
          value={stats?.size
            ? [
              stats.size,
              stats.codec,
              stats.framesPerSecond && `${stats.framesPerSecond} a second`,
            ].filter(Boolean)
              .join(", ")
            : null}
        />
        <Fact name="Held back by" value={stats?.limitedBy} />
        {stats && (
          <Fact
            name="Lost"
            value={`${countText(stats.lost)} packets, ${countText(stats.resent)} sent again, ${
              countText(stats.keyFramesAsked)
            } key frames asked for`}
          />
        )}
      </dl>
    </section>
  );
}

function Fact(
  { name, value }: { name: string; value: string | null | undefined },
) {
  if (value == null) return null;
  return (
    <>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </>
  );
}

function bitrateText(bits: number): string {
  return bits < 1_000_000 ? `${Math.round(bits / 1000)} kbit/s` : `${(bits / 1_000_000).toFixed(1)} Mbit/s`;
}

/** Frames a second between the last two counts; null before the second one. */
function useFrameRate(decoded: number): number | null {
  const seen = useRef<{ decoded: number; atMs: number; rate: number | null }>({
    decoded,
    atMs: performance.now(),
    rate: null,
  });
  const passedMs = performance.now() - seen.current.atMs;
  // Both sides count once a second, so that a shorter time says nothing.
  if (passedMs > 1_900) {
    const rate = (decoded - seen.current.decoded) * 1000 / passedMs;
    seen.current = { decoded, atMs: performance.now(), rate };
  }
  return seen.current.rate;
}

/** The address may be seen by others who look at the screen. */
function withoutPassword(address: string): string {
  const url = URL.parse(address);
  if (!url || url.password === "") return address;
  url.password = "…";
  return decodeURI(url.href);
}
