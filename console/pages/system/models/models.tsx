/** Models, their backends, and the room for calls. */

import type { Model, SystemBackend } from "../../../../client/mod.ts";
import { useLoaded } from "../../../service/loaded.ts";
import { client } from "../../../service/session.ts";
import { bytesText, counted, countText } from "../../../text/numbers.ts";
import { Shown } from "../../../ui/states.tsx";
import { Gauge } from "../gauge.tsx";
import type { Metrics } from "../metrics/prometheus.ts";
import { Backends, CallTable } from "./backends.tsx";
import { ModelTable } from "./model_table.tsx";

/** Each question asks all backends. */
const RELOAD_MS = 15_000;

export interface ModelPartProps {
  readonly backends: readonly SystemBackend[];
  /** Null until they are known, and where they may not be read. */
  readonly metrics: Metrics | null;
}

export function ModelPart({ backends, metrics }: ModelPartProps) {
  const models = useLoaded((signal) => client.value.listModels({ signal }), [client.value], RELOAD_MS);
  return (
    <section class="part" aria-label="Models">
      <h2>Models</h2>
      <Backends backends={backends} />
      {metrics !== null && <CallTable backends={backends} metrics={metrics} />}
      {metrics !== null && <Admission of={metrics} />}
      {backends.length > 0 && (
        <Shown of={models}>
          {(list) => (
            <details>
              <summary>{readyText(list)}</summary>
              <ModelTable models={list} />
            </details>
          )}
        </Shown>
      )}
    </section>
  );
}

function readyText(models: readonly Model[]): string {
  const ready = models.filter(({ availability }) => availability === "ready").length;
  const slow = models.filter(({ availability }) => availability === "saturated").length;
  return `${countText(ready)} of ${counted(models.length, "model")} ready${
    slow > 0 ? `, ${countText(slow)} slow` : ""
  }`;
}

function Admission({ of }: { of: Metrics }) {
  const value = (name: string) => of.sum(`service_infer_admission_${name}`);
  const refused = [
    "waiter_rejections_total",
    "timeouts_total",
    "deadline_missed_total",
    "budget_rejections_total",
  ]
    .reduce((sum, name) => sum + value(name), 0);
  return (
    <>
      <div class="gauges">
        <Gauge
          title="Calls under way"
          used={value("active")}
          limit={value("active_limit")}
          text={countText}
        />
        <Gauge
          title="Calls waiting"
          used={value("waiting")}
          limit={value("waiting_limit")}
          text={countText}
        />
        <Gauge
          title="Output tokens reserved"
          used={value("active_tokens")}
          limit={value("token_limit")}
          text={countText}
        />
        <Gauge
          title="Media reserved"
          used={value("active_bytes")}
          limit={value("byte_limit")}
          text={bytesText}
        />
      </div>
      <p class="hint">
        {refused === 0
          ? "No call was refused for want of room."
          : `${counted(refused, "call")} ${
            refused === 1 ? "was" : "were"
          } refused for want of room since the start: ${
            counted(value("waiter_rejections_total"), "full queue")
          }, ${counted(value("timeouts_total"), "long wait")}, ${
            counted(value("deadline_missed_total"), "deadline")
          }, ${counted(value("budget_rejections_total"), "too large a call")}.`}
      </p>
    </>
  );
}
