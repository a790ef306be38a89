/** The events and markers of a run as files that the reader keeps. */

import type { EventFormat, MarkerFilter, MarkerFormat } from "../../../client/mod.ts";
import { client } from "../../service/session.ts";
import { shortId } from "../../text/names.ts";
import { saveFile } from "../../ui/save_file.ts";
import { tell, tellFailure } from "../../ui/toast.tsx";

export interface ExportedRun {
  readonly runId: string;
  /** What the run is of, as pages show it; empty without a source. */
  readonly film: string;
}

export const EVENT_FORMATS: readonly {
  readonly format: EventFormat;
  readonly text: string;
}[] = [
  { format: "json", text: "JSON" },
  { format: "ndjson", text: "JSON lines" },
  { format: "csv", text: "CSV" },
];

export const MARKER_FORMATS: readonly {
  readonly format: MarkerFormat;
  readonly text: string;
}[] = [
  { format: "csv", text: "CSV" },
  { format: "ndjson", text: "JSON lines" },
  { format: "vtt", text: "WebVTT, for players" },
  { format: "edl", text: "EDL, for editors" },
];

export async function exportEvents(
  run: ExportedRun,
  format: EventFormat,
): Promise<void> {
  await save(
    run,
    "events",
    format,
    () => client.peek().getEventsText(run.runId, format),
  );
}

export async function exportMarkers(
  run: ExportedRun,
  format: MarkerFormat,
  filter: MarkerFilter = {},
): Promise<void> {
  await save(
    run,
    "markers",
    format,
    () => client.peek().getMarkersText(run.runId, format, filter),
  );
}

async function save(
  { runId, film }: ExportedRun,
  what: string,
  format: MarkerFormat,
  load: () => Promise<string>,
): Promise<void> {
  const of = film === "" ? "" : `${film.replace(/\.\w+$/, "")}-`;
  const name = fileName(`${of}${shortId(runId).replace("…", "-")}-${what}.${format}`);
  try {
    saveFile(name, new Blob([await load()]));
    tell(`Saved ${name}`);
  } catch (failure) {
    tellFailure(`The ${what} were not saved`, failure);
  }
}

/** What some file systems refuse in names becomes `_`; letters of every script stay. */
function fileName(name: string): string {
  // deno-lint-ignore no-control-regex -- control characters are what is looked for
  return name.replace(/[\u0000-\u001f\u007f"*/:<>?\\|]+/g, "_");
}
