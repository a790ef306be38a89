/** `triggers compile`, `validate` and `evaluate`. */

import type { Handler } from "../session.ts";
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

export const evaluateTrigger: Handler = async ({ client, out, signal }, [program, samples]) => {
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
