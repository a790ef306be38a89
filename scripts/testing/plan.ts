/** The order of the test files: which run alone and why, which start first, and how long a file may take. */

/** Deadline of one file, all its tests together, in seconds. A single test has its own: see test/support/preload.ts. */
export const FILE_DEADLINE_SECS = 600;

/** Files or folders whose tests run while nothing else does, each with the reason. */
export const ALONE: Readonly<Record<string, string>> = {
  "test/http/live/whip_webrtc_test.ts":
    "a publisher sends in real time, and late packets change what is counted",
  "test/http/live/whip_browser_test.ts": "a browser sends in real time and needs a processor of its own",
  "test/console/live_test.ts": "a browser sends in real time and needs a processor of its own",
  "test/foreign": "publishers send in real time, and some tests keep the machine busy on purpose",
};

/** The slowest files start first, so that no long file is left over at the end. Measured times, longest first. */
export const FIRST: readonly string[] = [
  "test/media/windows/extractor_test.ts",
  "test/media/recorded/frame_stream_test.ts",
  "test/media/recorded/decoder_test.ts",
  "test/http/reason/reason_test.ts",
  "test/http/reason/reason_native_test.ts",
  "test/http/ingest/ingest_test.ts",
  "test/http/files/upload_test.ts",
  "test/client/package_test.ts",
  "test/http/live/changing_codec_test.ts",
  "test/main_test.ts",
  "test/sandbox_test.ts",
  "test/http/ingest/remote_ingest_test.ts",
  "test/http/routes/webhooks_test.ts",
  "test/http/sse_test.ts",
];

export interface Plan {
  readonly sideBySide: readonly string[];
  readonly alone: readonly string[];
}

/** Splits `files` into the two groups, each in the order in which its files start. */
export function planOf(files: readonly string[]): Plan {
  const rank = (file: string) => FIRST.includes(file) ? FIRST.indexOf(file) : FIRST.length;
  const sorted = [...files].sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1));
  return {
    sideBySide: sorted.filter((file) => !runsAlone(file)),
    alone: sorted.filter(runsAlone),
  };
}

function runsAlone(file: string): boolean {
  return Object.keys(ALONE).some((path) => file === path || file.startsWith(`${path}/`));
}
