/** `triggers compile`, `validate` and `evaluate`. */

import type { Handler, Session } from "../session.ts";
import type { EvaluateTriggerOnRunRequest } from "../../client/mod.ts";
import { clock } from "../contact_sheet/marks.ts";
import { CliError } from "../failure.ts";
import { readJson, readJsonList, readText } from "./text_input.ts";

export const compileTrigger: Handler = async ({ client, out, signal }, [file], { output }) => {
  const compiled = await (await client()).compileTrigger(await readText(file!), { signal });
  const program = `${JSON.stringify(compiled.program, null, 2)}\n`;
  if (output !== undefined) await Deno.writeTextFile(output, program);
  if (out.isJson) return out.json(compiled);
  if (output === undefined) out.line(program.trimEnd());
  else {out.note(
      `${output}: ${compiled.instruction_count} instructions, ${compiled.state_slots} slots of state`,
    );}
};

export const validateTrigger: Handler = async ({ client, out, signal }, [file]) => {
  const answer = await (await client()).validateTrigger(await readJson(file!), { signal });
  const { program_id, program_version, instruction_count, state_slots } = answer;
  out.record(answer, [
    ["valid", "yes"],
    ["program_id", program_id],
    ["version", program_version],
    ["instructions", instruction_count],
    ["state_slots", state_slots],
  ], program_id);
};

export const evaluateTrigger: Handler = async (session, [program, samples], flags) => {
  const { client, out, signal } = session;
  const { run, fromMs: from_ms, toMs: to_ms } = flags;
  if ((run === undefined) === (samples === undefined)) {
    throw new CliError("usage", "give either a file of samples or --run RUN");
  }
  if (run !== undefined) {
    return await evaluateOnRun(session, run, { program: await readJson(program!), from_ms, to_ms });
  }
  if (from_ms !== undefined || to_ms !== undefined) {
    throw new CliError("usage", "--from-ms and --to-ms go with --run only");
  }
  const [code, list] = [await readJson(program!), await readJsonList(samples!)];
  const answer = await (await client()).evaluateTrigger(code, list as never, { signal });
  await out.list(
    answer,
    [{ title: "PTS_MS", isRight: true }, { title: "FIRED" }, { title: "MISSING SIGNAL" }, {
      title: "ACTIONS",
    }],
    answer.results.map(({ pts_ms, fired, missing_signal, actions }) => [
      pts_ms,
      fired ? "yes" : "no",
      missing_signal ? "yes" : "no",
      actions.map((action) => Object.values(action).join(" ")).join(", "),
    ]),
    "no results",
  );
};

async function evaluateOnRun(
  { client, out, signal }: Session,
  run: string,
  request: EvaluateTriggerOnRunRequest,
): Promise<void> {
  const answer = await (await client()).evaluateTriggerOnRun(run, request, { signal });
  const { fired, fired_total, frames, missing_signal_frames } = answer;
  await out.list(
    answer,
    [
      { title: "TIME" },
      { title: "FRAME", isRight: true },
      { title: "MOTION", isRight: true },
      { title: "NOVELTY", isRight: true },
    ],
    fired.map(({ pts_ms, frame_index, motion_score, novelty_score }) => [
      clock(pts_ms),
      frame_index,
      motion_score.toFixed(3),
      novelty_score.toFixed(3),
    ]),
    frames === 0
      ? "the run has decoded no frames there: `analyze` or an ingest comes first"
      : "it never fired",
  );
  out.note(
    `fired ${fired_total} times in ${frames} frames` +
      (fired_total > fired.length ? `, of which the first ${fired.length} are listed` : "") +
      (missing_signal_frames > 0 ? `; ${missing_signal_frames} frames lack a signal of the program` : ""),
  );
}
