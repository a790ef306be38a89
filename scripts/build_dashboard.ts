/** Writes deploy/grafana/dashboard.json from the table of panels; with --check it fails unless the file is up
 * to date.
 */

interface Panel {
  readonly title: string;
  /** A unit by Grafana's name. */
  readonly unit: string;
  /** What is drawn, by legend. `$of` selects the instances that were chosen above. */
  readonly lines: Readonly<Record<string, string>>;
  /** One number of now instead of a curve, with the value from which it is red. */
  readonly redFrom?: number;
}

const OF = 'job="$job", instance=~"$instance"';

function rate(family: string, by = "", matchers = ""): string {
  const sum = by === "" ? "sum" : `sum by (${by})`;
  return `${sum} (rate(${family}{$of${matchers}}[$__rate_interval]))`;
}

function percentile(share: number, family: string): string {
  return `histogram_quantile(${share}, sum by (le) (rate(${family}_bucket{$of}[$__rate_interval])))`;
}

/** The middle and the slow end of a histogram. */
function latency(title: string, unit: string, family: string): Panel {
  return { title, unit, lines: { median: percentile(0.5, family), "95 %": percentile(0.95, family) } };
}

/** TABLE of panels, by the heading of their row. */
const ROWS: Readonly<Record<string, readonly Panel[]>> = {
  "What wakes a person": [
    {
      title: "Instances that answer",
      unit: "none",
      lines: { up: "sum(up{$of})" },
    },
    {
      title: "Writes that the disk refused, last hour",
      unit: "none",
      lines: { failures: "sum(increase(service_timeline_append_failures_total{$of}[1h]))" },
      redFrom: 1,
    },
    {
      title: "Damaged records",
      unit: "none",
      lines: { records: "sum(service_timeline_damaged_records_total{$of})" },
      redFrom: 1,
    },
    {
      title: "Cameras that are lost",
      unit: "none",
      lines: {
        lost: 'sum(service_pipeline_pulled_sources{$of, state="lost"})',
        "not connected": 'sum(service_sources{$of, state="failed"})',
      },
      redFrom: 1,
    },
    {
      title: "Oldest event that waits for its webhook",
      unit: "s",
      lines: { age: "max(service_webhook_oldest_waiting_seconds{$of})" },
      redFrom: 600,
    },
    {
      title: "Worker faults, last hour",
      unit: "none",
      lines: { faults: "sum(increase(service_pipeline_worker_faults_total{$of}[1h]))" },
      redFrom: 1,
    },
  ],
  Storage: [
    {
      title: "Free room",
      unit: "percentunit",
      lines: { "{{instance}} {{place}}": "service_disk_free_bytes{$of} / service_disk_total_bytes{$of}" },
    },
    {
      title: "Removed by retention",
      unit: "ops",
      lines: { "{{what}}": "sum by (what) (rate(service_retention_removed_total{$of}[$__rate_interval]))" },
    },
    { title: "Events written", unit: "ops", lines: { events: rate("service_timeline_events_total") } },
    {
      title: "Refused and failed writes",
      unit: "ops",
      lines: {
        "by the disk": rate("service_timeline_append_failures_total"),
        "by a quota": rate("service_storage_quota_refusals_total"),
        "keyframe blobs": rate("service_pipeline_keyframe_blob_failures_total"),
        "media blobs": rate("service_pipeline_media_blob_failures_total"),
      },
    },
  ],
  "Requests and readers": [
    {
      title: "Connections",
      unit: "none",
      lines: { "{{instance}}": "service_http_connections{$of}" },
    },
    {
      title: "Runs created",
      unit: "ops",
      lines: { runs: rate("service_runs_created_total") },
    },
    {
      title: "Event streams",
      unit: "none",
      lines: { "{{instance}}": "service_sse_subscribers_active{$of}" },
    },
    latency("From the append of an event to its sending", "ms", "service_sse_commit_to_send_latency_ms"),
    {
      title: "Slow readers of event streams",
      unit: "ops",
      lines: {
        "read from the log": rate("service_sse_notification_lag_total"),
        "queue was full": rate("service_sse_output_queue_stalls_total"),
      },
    },
    { title: "Dropped log lines", unit: "ops", lines: { lines: rate("service_log_lines_dropped_total") } },
  ],
  Media: [
    {
      title: "Frames",
      unit: "ops",
      lines: {
        received: rate("service_pipeline_rtp_frames_received_total"),
        decoded: rate("service_pipeline_frames_decoded_total"),
        analyzed: rate("service_pipeline_gate_frames_analyzed_total"),
        dropped: rate("service_pipeline_frames_dropped_total"),
      },
    },
    latency("Time to decode a frame", "µs", "service_pipeline_decode_latency_us"),
    latency("Time to filter a frame", "µs", "service_pipeline_gate_latency_us"),
    {
      title: "Live sessions",
      unit: "none",
      lines: {
        sessions: "sum(service_pipeline_generations_active{$of})",
        "sources that give frames": 'sum(service_pipeline_pulled_sources{$of, state="receiving"})',
        "sources that are lost": 'sum(service_pipeline_pulled_sources{$of, state="lost"})',
      },
    },
    {
      title: "Faults and restarts of live sessions",
      unit: "ops",
      lines: {
        "decoder restarted": rate("service_pipeline_decoder_restarts_total"),
        "{{stage}} {{reason}}": rate("service_pipeline_worker_faults_total", "stage, reason"),
        "worker did not end": rate("service_pipeline_detached_workers_total"),
      },
    },
    {
      title: "Budget of live sessions that is taken",
      unit: "percentunit",
      lines: {
        "memory {{instance}}":
          "service_media_capacity_memory_reserved_bytes{$of} / service_media_capacity_memory_limit_bytes{$of}",
        "threads {{instance}}":
          "service_media_capacity_worker_threads_reserved{$of} / service_media_capacity_worker_thread_limit{$of}",
      },
    },
    {
      title: "Live sessions that were refused",
      unit: "ops",
      lines: { refused: rate("service_media_capacity_rejections_total") },
    },
    {
      title: "Keyframes without a description",
      unit: "ops",
      lines: { "{{reason}}": rate("service_pipeline_keyframes_undescribed_total", "reason") },
    },
    {
      title: "Decoder cage",
      unit: "none",
      lines: { "{{instance}} {{level}}": "service_decoder_cage{$of} == 1" },
    },
  ],
  Models: [
    {
      title: "Calls of model backends",
      unit: "ops",
      lines: { "{{provider}} {{status}}": rate("service_infer_requests_total", "provider, status") },
    },
    latency("Duration of calls", "ms", "service_infer_latency_ms"),
    {
      title: "Tokens",
      unit: "ops",
      lines: { "{{kind}}": rate("service_infer_tokens_total", "kind") },
    },
    {
      title: "Admission",
      unit: "none",
      lines: {
        "under way": "sum(service_infer_admission_active{$of})",
        waiting: "sum(service_infer_admission_waiting{$of})",
      },
    },
    {
      title: "Calls that were refused",
      unit: "ops",
      lines: {
        "waited too long ({{limit}})": rate("service_infer_admission_timeouts_total", "limit"),
        "queue was full": rate("service_infer_admission_waiter_rejections_total"),
        "could not meet the deadline": rate("service_infer_admission_deadline_missed_total"),
        "over a whole budget": rate("service_infer_admission_budget_rejections_total"),
      },
    },
    {
      title: "Error budget that is left",
      unit: "percentunit",
      lines: { "{{provider}}": "min by (provider) (service_infer_error_budget_remaining_ratio{$of})" },
    },
  ],
  Webhooks: [
    {
      title: "Deliveries",
      unit: "ops",
      lines: {
        delivered: rate("service_webhook_delivered_total"),
        retries: rate("service_webhook_retries_total"),
        "given up": rate("service_webhook_dead_letters_total"),
      },
    },
    {
      title: "Oldest event that waits",
      unit: "s",
      lines: { "{{instance}}": "service_webhook_oldest_waiting_seconds{$of}" },
    },
    { title: "Webhooks", unit: "none", lines: { registered: "sum(service_webhooks_configured{$of})" } },
  ],
  Audio: [
    latency(
      "From an audio window to its result",
      "ms",
      "service_pipeline_local_audio_processing_latency_ms",
    ),
    {
      title: "Failures of the audio sidecar",
      unit: "ops",
      lines: { "{{reason}}": rate("service_pipeline_local_audio_failures_total", "reason") },
    },
    {
      title: "Requests in the audio sidecar",
      unit: "none",
      lines: {
        "in work": "sum(service_pipeline_local_audio_sidecar_active{$of})",
        waiting: "sum(service_pipeline_local_audio_sidecar_queue_depth{$of})",
        "room for": "sum(service_pipeline_local_audio_sidecar_capacity{$of})",
      },
    },
  ],
};

const COLUMNS = 3;
const WIDTH = 24 / COLUMNS;
const HEIGHT = 7;
const DATASOURCE = { type: "prometheus", uid: "${datasource}" };

/** The text of the file. */
export function dashboardText(): string {
  const panels: object[] = [];
  let y = 0;
  for (const [heading, row] of Object.entries(ROWS)) {
    const id = panels.length + 1;
    panels.push({
      ...{ id, type: "row", title: heading, collapsed: false, panels: [] },
      gridPos: { x: 0, y: y++, w: 24, h: 1 },
    });
    row.forEach((panel, at) => {
      const place = { x: at % COLUMNS * WIDTH, y: y + Math.floor(at / COLUMNS) * HEIGHT };
      panels.push(built(panel, panels.length + 1, { ...place, w: WIDTH, h: HEIGHT }));
    });
    y += Math.ceil(row.length / COLUMNS) * HEIGHT;
  }
  const dashboard = {
    uid: "video-analysis",
    title: "Video analysis service",
    tags: ["video-analysis"],
    schemaVersion: 39,
    editable: true,
    refresh: "30s",
    time: { from: "now-6h", to: "now" },
    templating: { list: [datasource(), variable("job", false), variable("instance", true)] },
    panels,
  };
  return `${JSON.stringify(dashboard, null, 2)}\n`;
}

function built({ title, unit, lines, redFrom }: Panel, id: number, gridPos: object): object {
  const isNumber = redFrom !== undefined;
  return {
    ...{ id, title, type: isNumber ? "stat" : "timeseries", datasource: DATASOURCE, gridPos },
    fieldConfig: {
      defaults: {
        unit,
        ...(isNumber && {
          thresholds: {
            mode: "absolute",
            steps: [{ color: "green", value: null }, { color: "red", value: redFrom }],
          },
        }),
      },
      overrides: [],
    },
    targets: Object.entries(lines).map(([legendFormat, expr], at) => ({
      refId: String.fromCharCode(65 + at),
      datasource: DATASOURCE,
      expr: expr.replaceAll("$of", OF),
      legendFormat,
      instant: isNumber,
    })),
  };
}

function datasource(): object {
  return { name: "datasource", label: "Data source", type: "datasource", query: "prometheus" };
}

function variable(name: "job" | "instance", hasAll: boolean): object {
  const of = name === "instance" ? '{job="$job"}' : "";
  return {
    ...{ name, type: "query", datasource: DATASOURCE, refresh: 2, sort: 1 },
    query: { query: `label_values(service_runs_created_total${of}, ${name})`, refId: "A" },
    ...(hasAll && { includeAll: true, multi: true, current: { text: ["All"], value: ["$__all"] } }),
  };
}

if (import.meta.main) {
  const path = new URL("../deploy/grafana/dashboard.json", import.meta.url);
  if (!Deno.args.includes("--check")) Deno.writeTextFileSync(path, dashboardText());
  else if (Deno.readTextFileSync(path) !== dashboardText()) {
    console.error(
      "deploy/grafana/dashboard.json differs: run `./scripts/deno run -A scripts/build_dashboard.ts`",
    );
    Deno.exit(1);
  }
}
