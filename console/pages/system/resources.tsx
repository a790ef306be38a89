/** What the service has room for and what it runs beside it: live sessions, sidecars, the disk. */

import type { System } from "../../../client/mod.ts";
import { hrefOf } from "../../shell/place.ts";
import { bytesText, counted, countText } from "../../text/numbers.ts";
import { ago } from "../../text/time.ts";
import { Ago } from "../../ui/value.tsx";
import { Gauge } from "./gauge.tsx";
import type { Metrics } from "./metrics/prometheus.ts";

export function LiveCapacity({ of }: { of: Metrics }) {
  const value = (name: string) => of.sum(`service_media_capacity_${name}`);
  const refused = value("rejections_total");
  return (
    <section class="part" aria-label="Live sessions">
      <h2>Live sessions</h2>
      <div class="gauges">
        <Gauge
          title="Memory reserved"
          used={value("memory_reserved_bytes")}
          limit={value("memory_limit_bytes")}
          text={bytesText}
        />
        <Gauge
          title="Threads reserved"
          used={value("worker_threads_reserved")}
          limit={value("worker_thread_limit")}
          text={countText}
        />
      </div>
      <p class="hint">
        {counted(of.sum("service_pipeline_generations_active"), "session")} now. {refused === 0
          ? "None was refused for want of room."
          : `${counted(refused, "session")} ${
            refused === 1 ? "was" : "were"
          } refused for want of room, the last ${ago(value("last_rejection_timestamp_seconds") * 1000)}.`}
      </p>
    </section>
  );
}

export function Sidecars({ system, metrics }: { system: System; metrics: Metrics | null }) {
  const isSet = (name: string) => system.settings.find((setting) => setting.name === name)?.is_set ?? false;
  return (
    <section class="part" aria-label="Sidecars">
      <h2>Sidecars</h2>
      <dl class="facts">
        <dt>Audio</dt>
        <dd>
          {isSet("SERVICE_AUDIO_SIDECAR_ADDR")
            ? audioText(metrics)
            : <NotSet what="Not configured: sound is not analyzed." name="SERVICE_AUDIO_SIDECAR_ADDR" />}
        </dd>
        <dt>Embedding</dt>
        <dd>
          {isSet("SERVICE_NOVELTY_EMBEDDING_ADDR") ? embeddingText(metrics) : (
            <NotSet
              what="Not configured: each keyframe is described anew."
              name="SERVICE_NOVELTY_EMBEDDING_ADDR"
            />
          )}
        </dd>
      </dl>
    </section>
  );
}

function NotSet({ what, name }: { what: string; name: string }) {
  return (
    <>
      {what} <a href={hrefOf(["system"], { setting: name })}>Its setting</a>
    </>
  );
}

function audioText(metrics: Metrics | null): string {
  if (metrics === null) return "Configured.";
  const value = (name: string) => metrics.sum(`service_pipeline_local_audio_${name}`);
  const windows = value("windows_total");
  if (windows === 0) return "Configured; nothing was sent to it yet.";
  return `${counted(windows, "window")} of sound sent, ${
    countText(value("analysis_failures_total"))
  } failed. ` +
    `By its last answer ${countText(value("sidecar_active"))} of ${
      countText(value("sidecar_capacity"))
    } in work, ` +
    `${countText(value("sidecar_queue_depth"))} waiting.`;
}

function embeddingText(metrics: Metrics | null): string {
  if (metrics === null) return "Configured.";
  const value = (name: string) => metrics.sum(`service_pipeline_novelty_${name}`);
  const evaluated = value("evaluated_total");
  const without = value("embedding_unavailable_total");
  if (evaluated + without === 0) return "Configured; nothing was sent to it yet.";
  return `${counted(evaluated, "keyframe")} compared, ${
    countText(value("reused_total"))
  } descriptions reused, ` +
    `${countText(without)} keyframes without an answer.`;
}

const PURPOSES = [
  ["timeline_bytes", "events"],
  ["keyframe_bytes", "pictures"],
  ["media_bytes", "clips and sound"],
  ["recording_bytes", "recordings"],
  ["upload_bytes", "uploads"],
  ["other_bytes", "search index and others"],
] as const;

/** `deletes`: whether retention has any limit; null while that is not known. */
export function Disk({ of: { disk }, deletes }: { of: System; deletes: boolean | null }) {
  if (disk === null) {
    return (
      <section class="part" aria-label="Disk">
        <h2>Disk</h2>
        <p class="dim">The system of the service does not tell how much room it has.</p>
      </section>
    );
  }
  const { free_bytes, total_bytes, used } = disk;
  const sum = used === null ? 0 : PURPOSES.reduce((bytes, [name]) => bytes + used[name], 0);
  return (
    <section class="part" aria-label="Disk">
      <h2>Disk</h2>
      <div class="gauges">
        <Gauge
          title="Disk used"
          used={total_bytes - free_bytes}
          limit={total_bytes}
          text={bytesText}
        />
      </div>
      {used === null ? <p class="dim" role="status">The files of the service are being counted.</p> : (
        <>
          <p>
            The service takes <strong>{bytesText(sum)}</strong>
            {!used.is_complete && " and more: there are too many files to count them all"}
            {sum > 0 && ":"}
          </p>
          <dl class="facts">
            {PURPOSES.map(([name, text]) => (
              <>
                <dt>{text}</dt>
                <dd class="number">{bytesText(used[name])}</dd>
              </>
            ))}
          </dl>
        </>
      )}
      <p class="hint">
        {deletes === false && "Nothing is deleted by age."}
        {deletes === true &&
          "What is too old or too much is deleted, as the retention settings and the file of sources say."}
        {used !== null && (
          <>
            &#32;Counted <Ago ms={used.counted_at_ms} />.
          </>
        )}
      </p>
    </section>
  );
}
