/** Passes the gates of a release. Exit codes: 0 all hold, 1 some do not, 2 the arguments or a ceiling are
 * wrong.
 */

import { parseArgs } from "node:util";
import { type Gate, gateLine, passGates, verdict } from "./gate.ts";
import { GATES } from "./gates.ts";

/** The gates of these names. Throws for a name that no gate has. */
function chosenGates(names: readonly string[]): readonly Gate[] {
  const unknown = names.filter((name) => !GATES.some((gate) => gate.name === name));
  if (unknown.length > 0) {
    throw new Error(
      `no gate is called ${unknown.join(", ")}; there are ${GATES.map(({ name }) => name).join(", ")}`,
    );
  }
  return names.length === 0 ? GATES : GATES.filter(({ name }) => names.includes(name));
}

try {
  const { values } = parseArgs({ args: Deno.args, options: { only: { type: "string", default: "" } } });
  const gates = chosenGates(values.only.split(",").filter((name) => name !== ""));
  const results = await passGates(gates, Deno.env.toObject(), (result) => console.log(gateLine(result)));
  console.log(verdict(results));
  Deno.exit(results.every(({ holds }) => holds) ? 0 : 1);
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  Deno.exit(2);
}
