/** The attacks of bench, for a short time each: memory stays within its bound, and another caller is always
 * served.
 */

import { equal, match } from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { ATTACKS } from "../../bench/attacks/list.ts";

const SCRIPT = fileURLToPath(new URL("../../bench/attacks.ts", import.meta.url));

Deno.test("no attack makes the memory grow beyond its bound, or has another caller refused", async () => {
  const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "--quiet", SCRIPT, "--seconds", "2", "--frames", "20000", "--bounds", "memory"],
  }).output();
  const text = [stdout, stderr].map((bytes) => new TextDecoder().decode(bytes)).join("");
  equal(code, 0, text);
  for (const { name } of ATTACKS) match(text, new RegExp(`^${name} +\\d+ `, "m"));
});
