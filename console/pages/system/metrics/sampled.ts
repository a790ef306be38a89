/** The metrics of the service, sampled while the page is open and can be seen: the last scrape, and a bounded
 * past of some.
 */

import { useEffect, useState } from "preact/hooks";
import { isHttpError } from "../../../../client/mod.ts";
import { client, returns } from "../../../service/session.ts";
import { Metrics } from "./prometheus.ts";
import { SERIES } from "./series.ts";

export interface Sampled {
  readonly last: Metrics | null;
  /** Values of a series by its title, the oldest first; NaN where the service did not answer. */
  readonly past: ReadonlyMap<string, readonly number[]>;
  /** Why the last scrape failed; undefined when it did not. */
  readonly failure: unknown;
  /** The service tells metrics to callers with a key only, and this one has none. */
  readonly isRefused: boolean;
}

export const EVERY_MS = 2_000;
/** Five minutes. */
const POINTS_MAX = 150;

const NOTHING: Sampled = { last: null, past: new Map(), failure: undefined, isRefused: false };

export function useMetrics(): Sampled {
  const [sampled, setSampled] = useState<Sampled>(NOTHING);
  const asked = client.value;
  const returned = returns.value;
  useEffect(() => {
    const ending = new AbortController();
    let isAsking = false;
    const sample = async () => {
      if (document.hidden || isAsking) return;
      isAsking = true;
      try {
        const text = await asked.metrics({ signal: ending.signal, maxRetries: 0, timeoutMs: 10_000 });
        const metrics = new Metrics(text, Date.now());
        setSampled((before) => after(before, metrics));
      } catch (failure) {
        if (ending.signal.aborted) return;
        const isRefused = isHttpError(failure) && failure.status === 401;
        setSampled((before) => ({ ...before, failure, isRefused }));
      } finally {
        isAsking = false;
      }
    };
    void sample();
    const timer = setInterval(sample, EVERY_MS);
    const onShow = () => void sample();
    document.addEventListener("visibilitychange", onShow);
    return () => {
      ending.abort();
      clearInterval(timer);
      document.removeEventListener("visibilitychange", onShow);
    };
  }, [asked, returned]);
  return sampled;
}

function after({ last, past }: Sampled, metrics: Metrics): Sampled {
  const longer = SERIES.map(({ title, value, isRate }): [string, readonly number[]] => {
    const now = isRate ? rate(value, last, metrics) : value(metrics);
    const before = past.get(title) ?? [];
    return [title, now === null ? before : [...before, now].slice(-POINTS_MAX)];
  });
  return { last: metrics, past: new Map(longer), failure: undefined, isRefused: false };
}

/** Of a counter a second; null at first, and after a restart of the service, where it begins at 0 again. */
function rate(value: (metrics: Metrics) => number, before: Metrics | null, now: Metrics): number | null {
  if (before === null || now.atMs <= before.atMs) return null;
  const more = value(now) - value(before);
  return more < 0 ? null : more / ((now.atMs - before.atMs) / 1000);
}
