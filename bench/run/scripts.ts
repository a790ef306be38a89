/** TABLE of the benchmarks that `task bench` runs, in this order. */

export interface BenchScript {
  /** Path of the script in bench. */
  readonly path: string;
  /**
   * Arguments of the script in a quick run, which does the same work in fewer rounds; null where it takes too
   * long for that.
   */
  readonly quick: readonly string[] | null;
}

export const SCRIPTS: readonly BenchScript[] = [
  { path: "filter.ts", quick: ["--quick"] },
  { path: "ingest.ts", quick: ["--rounds", "3", "--only", "1080p,480p"] },
  { path: "models/reason.ts", quick: null },
  { path: "frames.ts", quick: null },
  { path: "live/live_decode.ts", quick: null },
  { path: "live/live.ts", quick: null },
  { path: "live/live_churn.ts", quick: null },
  { path: "live/cameras.ts", quick: null },
  { path: "extract.ts", quick: null },
  { path: "rtsp_tunnel.ts", quick: ["--seconds", "1", "--rounds", "3"] },
  { path: "tool_start.ts", quick: null },
  { path: "forwarder.ts", quick: null },
  { path: "commit.ts", quick: ["--rounds", "3"] },
  { path: "start.ts", quick: ["--rounds", "5"] },
  { path: "single_file.ts", quick: null },
  { path: "restart.ts", quick: ["--rounds", "3"] },
  { path: "verify.ts", quick: ["--rounds", "3"] },
  { path: "http.ts", quick: ["--rounds", "3", "--seconds", "1"] },
  { path: "tail.ts", quick: ["--rounds", "3", "--calls", "50"] },
  { path: "search.ts", quick: null },
  { path: "sse.ts", quick: ["--events", "60", "--seconds", "2"] },
  { path: "upload.ts", quick: ["--rounds", "3"] },
  { path: "webhook.ts", quick: ["--events", "1500", "--rounds", "3", "--seconds", "4"] },
  { path: "shares.ts", quick: null },
  { path: "dead_peers.ts", quick: ["--rounds", "3", "--seconds", "1"] },
  { path: "models/infer.ts", quick: ["--rounds", "3", "--seconds", "1"] },
  { path: "trigger.ts", quick: ["--rounds", "30"] },
  { path: "console.ts", quick: null },
];

/**
 * The benchmarks with these names, with or without `.ts`; all of them for none. Throws for a name that is
 * none.
 */
export function chosenScripts(
  all: readonly BenchScript[],
  { only, isQuick }: { readonly only: readonly string[]; readonly isQuick: boolean },
): BenchScript[] {
  const nameOf = (path: string) => path.replace(/\.ts$/, "");
  const names = new Set(only.map(nameOf));
  const isNamed = ({ path }: BenchScript) =>
    names.has(nameOf(path)) || names.has(nameOf(path.split("/").at(-1)!));
  const chosen = names.size === 0
    ? all.filter(({ quick }) => !isQuick || quick !== null)
    : all.filter(isNamed);
  const unknown = [...names].filter((name) =>
    !all.some(({ path }) => [path, path.split("/").at(-1)!].map(nameOf).includes(name))
  );
  if (unknown.length > 0) throw new Error(`no benchmark is called ${unknown.join(", ")}`);
  return [...chosen];
}
