/** What was measured of the frames of a marker: the numbers that it came from. */

import type { Mark } from "../../../timeline/mark.ts";
import { useLoaded } from "../../../service/loaded.ts";
import { client } from "../../../service/session.ts";
import { scoreText } from "../../../text/numbers.ts";

/** In the order in which they are told. */
const NAMES = {
  cut_score: "cut",
  artifact_score: "fault",
  ghosting_score: "change of the picture",
  flicker_score: "change of brightness",
  luma_mean: "brightness",
  noise_variance_score: "contrast",
} as const;

/** Nothing where the run has decoded no film. */
export function Measured(
  { runId, mark: { startMs, endMs } }: { runId: string; mark: Mark },
) {
  const asked = useLoaded(
    (signal) =>
      client.value.getSignals(runId, {
        from_ms: startMs,
        to_ms: endMs,
        points: 1,
      }, { signal }),
    [runId, startMs, endMs],
  );
  const found = asked.value;
  const frames = found?.counts[0];
  if (!found || !frames) return null;
  const lines = Object.entries(NAMES).flatMap(([signal, name]) => {
    const { min, max } = found.signals[signal] ?? {};
    const [least, most] = [min?.[0], max?.[0]];
    if (least == null || most == null) return [];
    const [from, to] = [scoreText(least), scoreText(most)];
    return [{ name, value: from === to ? from : `${from} – ${to}` }];
  });
  return (
    <section>
      <h3>
        {frames === 1 ? "Measured of this frame" : `Measured of these ${frames} frames, least and most`}
      </h3>
      <dl class="measured">
        {lines.map(({ name, value }) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd class="number">{value}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}
