/** The last deliveries of a webhook as a table: what was delivered, what is tried again, what was given up.
 */

import type { Delivery, WebhookOfRun } from "../../../../client/mod.ts";
import { setQuery } from "../../../shell/place.ts";
import { words } from "../../../text/names.ts";
import { countText } from "../../../text/numbers.ts";
import { durationText } from "../../../text/time.ts";
import { type Column, Table } from "../../../ui/table.tsx";
import { Ago } from "../../../ui/value.tsx";

/** One outcome, or the event that is being tried. */
interface OutcomeRow {
  readonly key: string;
  readonly seq: number;
  readonly kind: string | null;
  readonly state: "delivered" | "given up" | "trying";
  readonly error: string | null;
  readonly attempts: readonly number[];
  readonly tookMs: number | null;
}

const LOOKS = {
  delivered: { mark: "●", tone: "good" },
  "given up": { mark: "✕", tone: "bad" },
  trying: { mark: "◐", tone: "busy" },
} as const;

const COLUMNS: readonly Column<OutcomeRow>[] = [
  {
    title: "Event",
    cell: ({ seq }) => (
      <button
        type="button"
        class="quiet link"
        aria-label={`event ${seq}`}
        onClick={() => setQuery({ seq: String(seq) })}
      >
        {seq}
      </button>
    ),
    sortBy: ({ seq }) => seq,
    isNumber: true,
  },
  {
    title: "Kind",
    cell: ({ kind }) => kind === null ? "" : words(kind),
    sortBy: ({ kind }) => kind ?? "",
  },
  {
    title: "Outcome",
    cell: ({ state }) => (
      <span class={`status is-${LOOKS[state].tone}`}>
        <span aria-hidden="true">{LOOKS[state].mark}</span> {state}
      </span>
    ),
    sortBy: ({ state }) => state,
  },
  {
    title: "Attempts",
    cell: ({ attempts }) => countText(attempts.length),
    sortBy: ({ attempts }) => attempts.length,
    isNumber: true,
    isExtra: true,
  },
  {
    title: "Took",
    cell: ({ tookMs }) => tookMs === null ? "" : durationText(tookMs),
    sortBy: ({ tookMs }) => tookMs ?? -1,
    isNumber: true,
    isExtra: true,
  },
  {
    title: "Last attempt",
    cell: ({ attempts }) => attempts.length === 0 ? "none" : <Ago ms={attempts.at(-1)!} />,
    sortBy: ({ attempts }) => attempts.at(-1) ?? 0,
    isNumber: true,
    isExtra: true,
  },
  {
    title: "Error",
    cell: ({ error }) => <span title={error ?? ""}>{error ?? ""}</span>,
    sortBy: ({ error }) => error ?? "",
    isExtra: true,
  },
];

/** The details say the error themselves. */
const BESIDE_DETAILS = COLUMNS.filter(({ title }) => title !== "Error");

export interface DeliveriesProps {
  readonly hook: WebhookOfRun;
  readonly deliveries: readonly Delivery[];
  readonly chosen: number | null;
  readonly query: URLSearchParams;
}

export function Deliveries(
  { hook, deliveries, chosen, query }: DeliveriesProps,
) {
  const isDeadOnly = query.get("only") === "given-up";
  const rows = rowsOf(hook, deliveries).filter(({ state }) => !isDeadOnly || state === "given up");
  return (
    <section class="hook-deliveries" aria-label="Deliveries">
      <div class="row">
        <h2>Deliveries</h2>
        <button
          type="button"
          aria-pressed={isDeadOnly}
          onClick={() => setQuery({ only: isDeadOnly ? null : "given-up" })}
        >
          Given up only
        </button>
        {chosen === null && rows.length > 0 && <span class="hint">Choose one to see what was sent.</span>}
      </div>
      {rows.length === 0 ? <p class="note">{noneText(hook, isDeadOnly)}</p> : (
        <Table
          name="deliveries"
          rows={rows}
          columns={chosen === null ? COLUMNS : BESIDE_DETAILS}
          keyOf={({ key }) => key}
          textOf={({ seq, kind, state, error }) => `${seq} ${kind ?? ""} ${state} ${error ?? ""}`}
          onOpen={({ seq }) => setQuery({ seq: String(seq) })}
        />
      )}
      {rows.length > 0 && (
        <p class="hint">
          The service keeps the last outcomes of each webhook; older ones are counted only.
        </p>
      )}
    </section>
  );
}

function noneText(hook: WebhookOfRun, isDeadOnly: boolean): string {
  if (isDeadOnly) return "None of the last events was given up.";
  return hook.delivered + hook.dead_letters > 0
    ? "The outcomes of its deliveries are not known any more."
    : "Nothing was sent yet: no event after its registration matches.";
}

/** The event that is tried now, the last outcomes, then dead letters that are older than those. */
function rowsOf(
  { retry, recent_dead_letters }: WebhookOfRun,
  deliveries: readonly Delivery[],
): OutcomeRow[] {
  const times = new Map<number, number>();
  const rows = deliveries.map(
    ({ seq, kind, outcome, error, attempts, took_ms }): OutcomeRow => {
      const time = (times.get(seq) ?? 0) + 1;
      times.set(seq, time);
      const state = outcome === "delivered" ? "delivered" : "given up";
      return {
        key: `${seq} ${attempts.at(-1) ?? time}`,
        seq,
        kind,
        state,
        error,
        attempts,
        tookMs: took_ms,
      };
    },
  );
  const older = recent_dead_letters.filter(({ seq }) => !times.has(seq))
    .toReversed()
    .map(({ seq, error, attempts }): OutcomeRow => ({
      ...{
        key: `dead ${seq}`,
        seq,
        kind: null,
        state: "given up",
        error,
        attempts,
        tookMs: null,
      },
    }));
  const tried: OutcomeRow[] = retry === null ? [] : [{
    ...{
      key: "trying",
      seq: retry.seq,
      kind: null,
      state: "trying",
      error: null,
      tookMs: null,
    },
    attempts: retry.attempts,
  }];
  return [...tried, ...rows, ...older];
}
