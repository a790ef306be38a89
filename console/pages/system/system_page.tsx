/** The service itself: its models, room, disk, metrics, configuration and versions. */

import { useLoaded } from "../../service/loaded.ts";
import { client } from "../../service/session.ts";
import type { Place } from "../../shell/place.ts";
import { dateAndClock, durationText } from "../../text/time.ts";
import { useNow } from "../../ui/now.ts";
import { FailureNote, Shown } from "../../ui/states.tsx";
import { type Sampled, useMetrics } from "./metrics/sampled.ts";
import { Sparklines } from "./metrics/sparklines.tsx";
import { ModelPart } from "./models/models.tsx";
import { Disk, LiveCapacity, Sidecars } from "./resources.tsx";
import { Settings } from "./settings.tsx";
import "./system.css";

const RELOAD_MS = 5_000;
/** What the service looks at every run for. */
const SELDOM_MS = 60_000;

export function SystemPage({ query }: Place) {
  const system = useLoaded((signal) => client.value.getSystem({ signal }), [client.value], RELOAD_MS);
  const retention = useLoaded((signal) => client.value.getRetention({ signal }), [client.value], SELDOM_MS);
  const sampled = useMetrics();
  const metrics = sampled.last;
  return (
    <section class="page system">
      <header class="page-head">
        <h1>System</h1>
      </header>
      <Shown of={system}>
        {(of) => (
          <>
            <ModelPart backends={of.backends} metrics={metrics} />
            <div class="cards">
              {metrics !== null && <LiveCapacity of={metrics} />}
              <Disk of={of} deletes={retention.value?.is_on ?? null} />
              <Sidecars system={of} metrics={metrics} />
              <Versions version={of.version} deno={of.deno} startedMs={of.started_at_ms} />
            </div>
            <MetricPart of={sampled} />
            <Settings settings={of.settings} query={query} />
          </>
        )}
      </Shown>
    </section>
  );
}

function MetricPart({ of }: { of: Sampled }) {
  return (
    <section class="part" aria-label="Metrics">
      <h2>Metrics</h2>
      {of.isRefused
        ? (
          <p class="note">
            The service tells its metrics to callers with a key only, and this console was opened without one.
            The operator can change that with SERVICE_METRICS_REQUIRE_API_KEY=false.
          </p>
        )
        : of.failure !== undefined && of.last === null
        ? <FailureNote failure={of.failure} />
        : (
          <>
            <p class="hint">
              Sampled every 2 s while this page is open and can be seen; the last five minutes.
            </p>
            <Sparklines of={of} />
          </>
        )}
    </section>
  );
}

function Versions({ version, deno, startedMs }: { version: string; deno: string; startedMs: number }) {
  const now = useNow();
  return (
    <section class="part" aria-label="Versions">
      <h2>Versions</h2>
      <dl class="facts">
        <dt>Service</dt>
        <dd class="number">{version}</dd>
        <dt>Deno</dt>
        <dd class="number">{deno}</dd>
        <dt>Running for</dt>
        <dd class="number" title={dateAndClock(startedMs)}>{durationText(Math.max(0, now - startedMs))}</dd>
      </dl>
    </section>
  );
}
