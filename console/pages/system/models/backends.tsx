/** The model backends: whether each is used or skipped, and the calls of each kind since the service started.
 */

import type { SystemBackend } from "../../../../client/mod.ts";
import { countText, scoreText } from "../../../text/numbers.ts";
import { durationText } from "../../../text/time.ts";
import { useNow } from "../../../ui/now.ts";
import { EmptyNote } from "../../../ui/states.tsx";
import { type Column, Table } from "../../../ui/table.tsx";
import type { Metrics, Quantile } from "../metrics/prometheus.ts";

export function Backends({ backends }: { backends: readonly SystemBackend[] }) {
  const now = useNow();
  if (backends.length === 0) {
    return (
      <EmptyNote title="No model backend">
        <p>
          Cuts, faults and signals need none. For descriptions, the operator names an OpenAI-compatible server
          in the environment of the service, or several in a file:
        </p>
        <pre class="code">SERVICE_VLLM_BASE_URL=http://127.0.0.1:8000</pre>
      </EmptyNote>
    );
  }
  return (
    <ul class="backends">
      {backends.map((backend, at) => {
        const { mark, tone, text } = circuitLook(backend, now);
        return (
          <li key={at} class="card">
            <strong>{backend.name ?? backend.provider}</strong>
            <span class="dim">
              {backend.name !== null && backend.name !== backend.provider && `${backend.provider}, `}
              {backend.model ?? servedText(backend)}
            </span>
            <span class={`status is-${tone}`}>
              <span aria-hidden="true">{mark}</span> {text}
            </span>
          </li>
        );
      })}
    </ul>
  );
}

/** As many names as fit on a card. */
const NAMES_MAX = 5;

function servedText({ models }: SystemBackend): string {
  if (models == null) return "every model of the catalog; it does not say which it has";
  const more = models.length - NAMES_MAX;
  return `${models.slice(0, NAMES_MAX).join(", ")}${more > 0 ? ` and ${countText(more)} more` : ""}`;
}

function circuitLook({ circuit, probe_at_ms, fault, is_slow }: SystemBackend, nowMs: number) {
  if (circuit === "closed" && fault != null) return { mark: "✕", tone: "bad", text: fault };
  if (circuit === "closed" && is_slow === true) return { mark: "◐", tone: "busy", text: "slow" };
  if (circuit === "closed") return { mark: "●", tone: "good", text: "used" };
  if (circuit === "half_open") {
    return { mark: "◐", tone: "busy", text: "failed before; the next call decides whether it is used again" };
  }
  const leftMs = (probe_at_ms ?? nowMs) - nowMs;
  const when = leftMs < 1000
    ? "tried again at once"
    : `tried again in ${durationText(Math.round(leftMs / 1000) * 1000)}`;
  return { mark: "✕", tone: "bad", text: `skipped after failures; ${when}` };
}

interface Calls {
  readonly provider: string;
  readonly ok: number;
  readonly failed: number;
  readonly fallbacks: number;
  readonly median: Quantile | null;
  readonly slow: Quantile | null;
  readonly prompt: number;
  readonly completion: number;
  readonly thinking: number;
  readonly budget: number;
}

const COLUMNS: readonly Column<Calls>[] = [
  { title: "Kind", cell: ({ provider }) => provider, sortBy: ({ provider }) => provider },
  {
    title: "Calls",
    cell: ({ ok, failed }) => countText(ok + failed),
    sortBy: ({ ok }) => ok,
    isNumber: true,
  },
  {
    title: "Failed",
    cell: ({ failed }) => countText(failed),
    sortBy: ({ failed }) => failed,
    isNumber: true,
  },
  {
    title: "As fallback",
    cell: ({ fallbacks }) => countText(fallbacks),
    isNumber: true,
    isExtra: true,
  },
  { title: "Median", cell: ({ median }) => latency(median), isNumber: true },
  { title: "95th percentile", cell: ({ slow }) => latency(slow), isNumber: true, isExtra: true },
  { title: "Tokens in", cell: ({ prompt }) => countText(prompt), isNumber: true, isExtra: true },
  { title: "Tokens out", cell: ({ completion }) => countText(completion), isNumber: true, isExtra: true },
  { title: "Thinking", cell: ({ thinking }) => countText(thinking), isNumber: true, isExtra: true },
  {
    title: "Error budget left",
    cell: ({ budget }) => `${scoreText(budget * 100)} %`,
    isNumber: true,
    isExtra: true,
  },
];

const PROVIDERS = ["vllm", "sglang", "gemini", "mlx"];

/** Since the start of the service; the latencies are estimates from the buckets of the histogram. */
export function CallTable({ backends, metrics }: { backends: readonly SystemBackend[]; metrics: Metrics }) {
  const rows = PROVIDERS.map((provider) => callsOf(provider, metrics)).filter(({ provider, ok, failed }) =>
    ok + failed > 0 || backends.some((backend) => backend.provider === provider)
  );
  if (rows.length === 0) return null;
  return (
    <>
      <Table name="calls" rows={rows} columns={COLUMNS} keyOf={({ provider }) => provider} />
      <p class="hint">
        Since the start of the service. Latencies are estimates from a histogram; the error budget is the 1 %
        of calls that may fail.
      </p>
    </>
  );
}

function callsOf(provider: string, metrics: Metrics): Calls {
  const labels = { provider };
  const tokens = (kind: string) => metrics.sum("service_infer_tokens_total", { provider, kind });
  return {
    provider,
    ok: metrics.sum("service_infer_requests_total", { provider, status: "ok" }),
    failed: metrics.sum("service_infer_requests_total", { provider, status: "error" }),
    fallbacks: metrics.sum("service_infer_fallback_total", labels),
    median: metrics.quantile("service_infer_latency_ms", 0.5, labels),
    slow: metrics.quantile("service_infer_latency_ms", 0.95, labels),
    prompt: tokens("prompt"),
    completion: tokens("completion"),
    thinking: tokens("thinking"),
    budget: metrics.sum("service_infer_error_budget_remaining_ratio", labels),
  };
}

function latency(of: Quantile | null): string {
  if (of === null) return "";
  return of.isAbove ? `more than ${durationText(of.value)}` : durationText(of.value);
}
