/** `runs …` but the export, and `states`. */

import type { Client, Run } from "../../client/mod.ts";
import { paintStatus } from "../output/colour.ts";
import type { Handler } from "../session.ts";
import { RUN_STATES } from "../table/choices.ts";
import { writeWhole } from "./whole_file.ts";

/** Of one answer. */
const PAGE = 1_000;

export const listRuns: Handler = async ({ client, out, signal }, _args, { status, limit, newest }) => {
  const all = await listed(await client(), { limit, order: newest ? "newest" : "oldest" }, signal);
  const runs = status === undefined ? all : all.filter((run) => run.status === status);
  await out.list(
    runs,
    [
      { title: "RUN" },
      { title: "STATUS", paint: (text) => paintStatus(out.paint, text) },
      { title: "MODE" },
      { title: "CREATED" },
      { title: "UPDATED" },
      { title: "SOURCE" },
    ],
    runs.map((run) => [
      ...[run.run_id, run.status, run.mode, shortTime(run.created_at), shortTime(run.updated_at)],
      run.source_name ?? run.source_uri,
    ]),
    status === undefined ? "no runs" : `no run is ${status}`,
  );
};

export const showRun: Handler = async ({ client, out, signal }, [id]) => {
  const run = await (await client()).getRun(id!, { signal });
  out.record(run, Object.entries(run) as [string, string][], run.run_id);
};

export const createRun: Handler = async ({ client, out, signal }, _args, { mode, model }) => {
  const run = await (await client()).createRun({
    ...(mode !== undefined && { mode }),
    ...(model !== undefined && { model }),
  }, { signal });
  const { run_id, status, mode: kept, model: label } = run;
  out.record(run, [["run_id", run_id], ["status", status], ["mode", kept], ["model", label]], run_id);
};

export const stopRun: Handler = async ({ client, out, signal }, [id]) => {
  await (await client()).stopRun(id!, { signal });
  out.record({ run_id: id, status: "cancelled" }, [["run_id", id], ["status", "cancelled"]], id!);
};

export const keepaliveRun: Handler = async ({ client, out, signal }, [id]) => {
  await (await client()).keepaliveRun(id!, { signal });
  out.record({ run_id: id, state: "processing" }, [["run_id", id], ["state", "processing"]], id!);
};

export const snapshotRun: Handler = async ({ client, out, signal }, [id, file]) => {
  const picture = await (await client()).getSnapshot(id!, { signal });
  await writeWhole(file!, await picture.bytes());
  out.record({ run_id: id, file, bytes: picture.size }, [["file", file!], ["bytes", picture.size]], file!);
};

export const holdRun: Handler = async ({ client, out, signal }, [id]) => {
  await (await client()).holdRun(id!, { signal });
  out.record({ run_id: id, on_hold: true }, [["run_id", id], ["on hold", "yes"]], id!);
};

export const releaseRun: Handler = async ({ client, out, signal }, [id]) => {
  await (await client()).releaseRun(id!, { signal });
  out.record({ run_id: id, on_hold: false }, [["run_id", id], ["on hold", "no"]], id!);
};

export const deleteRun: Handler = async ({ client, out, signal }, [id]) => {
  await (await client()).deleteRun(id!, { signal });
  out.record({ run_id: id, deleted: true }, [["run_id", id], ["deleted", "yes"]], id!);
};

export const listStates: Handler = async ({ client, out, signal }) => {
  const runs = await (await client()).listRuns({ signal });
  const states = RUN_STATES.map(([state, is_terminal, meaning]) => ({
    state,
    runs: runs.filter(({ status }) => status === state).length,
    is_terminal,
    meaning,
  }));
  await out.list(
    states,
    [
      { title: "STATE", paint: (text) => paintStatus(out.paint, text) },
      { title: "RUNS", isRight: true },
      { title: "TERMINAL" },
      { title: "MEANING" },
    ],
    states.map(({ state, runs, is_terminal, meaning }) => [state, runs, is_terminal ? "yes" : "no", meaning]),
    "",
  );
};

/** The first runs of the order, or all. */
async function listed(
  client: Client,
  { limit = Infinity, order }: { limit?: number; order: "oldest" | "newest" },
  signal: AbortSignal,
): Promise<readonly Run[]> {
  if (limit === Infinity && order === "oldest") return await client.listRuns({ signal });
  const runs: Run[] = [];
  for (let cursor: string | null = null; runs.length < limit;) {
    const wish = { order, limit: Math.min(PAGE, limit - runs.length), ...(cursor !== null && { cursor }) };
    const page = await client.listRunsPage(wish, { signal });
    runs.push(...page.runs);
    cursor = page.next_cursor;
    if (cursor === null) break;
  }
  return runs;
}

/** `2026-11-22 10:14:18Z`. */
function shortTime(iso: string): string {
  return iso.replace("T", " ").replace(/\.\d+Z$/, "Z");
}
