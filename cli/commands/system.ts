/** `health` and `models`, and `edge`, which belongs to another program. */

import { CliError } from "../failure.ts";
import type { Handler } from "../session.ts";

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

export const edge: Handler = () => {
  throw new CliError(
    "usage",
    "edge commands are not part of this program",
    "the edge updater runs beside the server, as a program and a user of its own",
  );
};
