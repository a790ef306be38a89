/** The order of the test files: which run alone and why, which start first, and how long a file may take. */

/**
 * Deadline of one file, all its tests together, in seconds. A single test has its own: see
 * test/support/preload.ts.
 */
export const FILE_DEADLINE_SECS = 900;

/** Files or folders whose tests run while nothing else does, each with the reason. */
export const ALONE: Readonly<Record<string, string>> = {
  "test/http/live/whip_webrtc_test.ts":
    "a publisher sends in real time, and late packets change what is counted",
  "test/http/live/whip_browser_test.ts": "a browser sends in real time and needs a processor of its own",
  "test/console/live_test.ts": "a browser sends in real time and needs a processor of its own",
  "test/foreign": "publishers send in real time, and some tests keep the machine busy on purpose",
};

/**
 * The slowest files start first, so that no long file is left over at the end. Measured times, longest first.
 */
export const FIRST: readonly string[] = [
  "test/media/files/extractor_test.ts",
  "test/media/files/frame_stream_test.ts",
  "test/media/files/decoder_test.ts",
  "test/http/reason/reason_test.ts",
  "test/http/reason/reason_native_test.ts",
  "test/http/ingest/ingest_test.ts",
  "test/http/files/upload_test.ts",
  "test/client/package_test.ts",
  "test/http/live/changing_codec_test.ts",
  "test/main_test.ts",
  "test/process/sandbox_test.ts",
  "test/http/ingest/remote_ingest_test.ts",
  "test/http/routes/webhooks_test.ts",
  "test/http/routes/sse_test.ts",
];

/** Files or folders that run once for each ffmpeg, each with what differs between versions. */
export const WITH_EACH_FFMPEG: Readonly<Record<string, string>> = {
  "test/media/files/broken_clocks_test.ts": "how ffmpeg times frames",
  "test/media/files/same_marks_test.ts": "what becomes of its frames and its words",
  "test/media/files/damaged_decode_test.ts": "what ffmpeg says of damage, and in which order",
  "test/media/files/decoder_test.ts": "which arguments ffmpeg takes",
  "test/media/jobs/steady_rate_test.ts": "how ffmpeg times frames",
  "test/media/files/sampled_decode_test.ts": "how ffmpeg chooses frames",
  "test/media/files/combed_decode_test.ts": "how ffmpeg makes one picture of two fields",
  "test/media/containers": "what ffmpeg writes, and how it copies packets",
  "test/media/live/opus_wav_test.ts": "what ffmpeg writes",
  "test/media/live/damaged_live_test.ts": "what ffmpeg says of damaged live frames",
  "test/media/live/changing_size_test.ts": "what ffmpeg does where the size of the pictures changes",
  "test/http/live/changing_size_test.ts": "what ffmpeg does where the size of the pictures changes",
  "test/http/live/camera_shapes_test.ts": "how ffmpeg times the packets of cameras",
  "test/media/files/probe_test.ts": "what ffprobe answers",
  "test/media/broker/caged_jobs_test.ts": "which files and system calls ffmpeg needs",
  "test/sidecar/embedding_test.ts": "how ffmpeg goes on behind what it cannot read",
};

/** A file, and the ffmpeg with which it runs. */
export interface Turn {
  readonly file: string;
  /** Folder of the ffmpeg; null for the first one, with which all files run. */
  readonly ffmpeg: string | null;
}

/** All turns of the files: with the first ffmpeg, then those that run with each of the `others`. */
export function turnsOf(files: readonly string[], others: readonly string[]): Turn[] {
  const again = files.filter((file) => isUnder(file, WITH_EACH_FFMPEG));
  return [null, ...others].flatMap((ffmpeg) =>
    (ffmpeg === null ? files : again).map((file) => ({ file, ffmpeg }))
  );
}

export interface Plan {
  readonly sideBySide: readonly Turn[];
  readonly alone: readonly Turn[];
}

/** Splits the turns into the two groups, each in the order in which its files start. */
export function planOf(turns: readonly Turn[]): Plan {
  const rank = (file: string) => FIRST.includes(file) ? FIRST.indexOf(file) : FIRST.length;
  const sorted = [...turns].sort((a, b) => rank(a.file) - rank(b.file) || (a.file < b.file ? -1 : 1));
  return {
    sideBySide: sorted.filter(({ file }) => !isUnder(file, ALONE)),
    alone: sorted.filter(({ file }) => isUnder(file, ALONE)),
  };
}

function isUnder(file: string, table: Readonly<Record<string, string>>): boolean {
  return Object.keys(table).some((path) => file === path || file.startsWith(`${path}/`));
}
