/** `health`, `sources`, `retention` and `models`, and `edge`, which this service does not have. */

import { CliError } from "../failure.ts";
import type { ArmedSource, ArmRequest, NamedSource } from "../../client/mod.ts";
import type { Handler } from "../session.ts";
import type { Output } from "../output/output.ts";

export const health: Handler = async ({ client, out, settings, signal }) => {
  const startMs = performance.now();
  const answer = await (await client()).health({ signal });
  const tookMs = Math.round(performance.now() - startMs);
  if (out.isJson) return out.json(answer);
  if (out.isQuiet) return out.line(answer.status);
  out.line(`${out.paint.green(answer.status)}  ${settings.url} answered in ${tookMs} ms`);
};

export const models: Handler = async ({ client, out, signal }, _args, { ready }) => {
  const all = await (await client()).listModels({ signal });
  const shown = ready ? all.filter(({ availability }) => availability !== "unavailable") : all;
  const availability = (text: string) =>
    text === "ready" ? out.paint.green : text === "saturated" ? out.paint.yellow : out.paint.dim;
  await out.list(
    shown,
    [{ title: "MODEL" }, { title: "TIER" }, { title: "AVAILABILITY", paint: availability }, {
      title: "BACKENDS",
    }],
    shown.map((model) => [model.id, model.tier, model.availability, model.providers_available.join(", ")]),
    ready ? "no model can be reached" : "the catalog is empty",
  );
};

export const sources: Handler = async ({ client, out, signal }) => {
  const all = await (await client()).listSources({ signal });
  const state = (text: string) =>
    text === "live" ? out.paint.green : text === "disabled" ? out.paint.dim : out.paint.yellow;
  await out.list(
    all,
    [
      ...[{ title: "SOURCE" }, { title: "KIND" }, { title: "STATE", paint: state }, { title: "LAST FRAME" }],
      ...[{ title: "ARMED" }, { title: "RUN" }, { title: "REASON" }],
    ],
    all.map((source) => [
      ...[source.source_uri, source.kind, source.state, age(source.last_frame_age_ms)],
      ...[source.armed === null ? "" : armedText(source), source.run_id ?? "", source.reason ?? ""],
    ]),
    "the server names no sources for you",
  );
};

export const armSource: Handler = async ({ client, out, signal }, [name], flags: ForFlag) => {
  say(await (await client()).armSource(name!, orderOf(flags), { signal }), out);
};

export const disarmSource: Handler = async ({ client, out, signal }, [name], flags: ForFlag) => {
  say(await (await client()).disarmSource(name!, orderOf(flags), { signal }), out);
};

function say(armed: ArmedSource, out: Output): void {
  if (out.isJson) return out.json(armed);
  out.line(out.isQuiet ? armed.name : `${armed.name} is ${armedText(armed)}`);
}

interface ForFlag {
  readonly for?: number;
}

function orderOf(flags: ForFlag): ArmRequest {
  return flags.for === undefined ? {} : { for_seconds: flags.for };
}

function armedText({ armed, next_change_ms }: Pick<NamedSource, "armed" | "next_change_ms">): string {
  const until = next_change_ms === null ? "" : ` until ${new Date(next_change_ms).toISOString()}`;
  return `${armed ? "armed" : "disarmed"}${until}`;
}

export const retention: Handler = async ({ client, out, signal }) => {
  const answer = await (await client()).getRetention({ signal });
  const rows = [
    ...answer.goes.runs.map((run) => ({ ...run, next: "goes" })),
    ...answer.stays.runs.map((run) => ({ ...run, next: "stays" })),
    ...answer.media.runs.map((run) => ({
      ...run,
      ...{ next: "goes", reason: `${run.media}s: ${run.reason}`, ended_at_ms: null },
    })),
  ];
  if (out.isJson) return out.json(answer);
  const next = (text: string) => text === "goes" ? out.paint.yellow : out.paint.green;
  await out.list(
    rows,
    [{ title: "RUN" }, { title: "NEXT", paint: next }, { title: "REASON" }, { title: "BYTES" }, {
      title: "ENDED",
    }],
    rows.map((run) => [
      ...[run.run_id, run.next, run.reason, String(run.bytes)],
      run.ended_at_ms === null ? "" : new Date(run.ended_at_ms).toISOString(),
    ]),
    answer.is_on ? "you have no runs" : "retention is off, and you have no runs",
  );
};

function age(ms: number | null): string {
  return ms === null ? "" : `${Math.round(ms / 1000)} s ago`;
}

export const edge: Handler = () => {
  throw new CliError(
    "usage",
    "edge commands are not part of this program",
  );
};
