/** The entry of the process: it replaces itself by one without settings in its environment, then serves or
 * forwards streams.
 */

import { ENVIRONMENT_ON_STDIN, FORWARD_STREAMS, readEnvironmentOnce } from "./process/clean_process.ts";

if (import.meta.main) {
  // A compiled service is the only program at hand for its forwarder.
  if (Deno.args.at(-1) === FORWARD_STREAMS) {
    const { forwardStreams } = await import("./process/forwarder_process.ts");
    await forwardStreams();
  }
  if (Deno.args.length > 0 && Deno.args.at(-1) !== ENVIRONMENT_ON_STDIN) {
    const { obey } = await import("./process/command_line.ts");
    Deno.exit(await obey(Deno.args, Deno.env.toObject()));
  }
  const environment = readEnvironmentOnce();
  // Everything else is loaded by the process that stays.
  const { runService } = await import("./process/service_process.ts");
  Deno.exit(await runService(environment));
}
