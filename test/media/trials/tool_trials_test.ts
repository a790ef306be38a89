/** What the machine's ffmpeg can do is found with the jobs of the service, and a fault of it is named with
 * its own words.
 */

import { deepEqual, equal, match, ok, rejects } from "node:assert/strict";
import { join } from "node:path";
import { AboutFfmpeg } from "../../../src/media/trials/ffmpeg_facts.ts";
import { ABILITIES, type Ability } from "../../../src/media/trials/abilities.ts";
import { ToolTrials } from "../../../src/media/trials/tool_trials.ts";
import { writeTempFile } from "../../../src/store/files/temp_folder.ts";
import { NO_CAGE } from "../../../src/media/broker/cage.ts";
import { BUBBLEWRAP, cageOf } from "../../support/cages.ts";
import { TempFolder, tools, world } from "../../support/media.ts";
import { needing } from "../../support/needs.ts";
import { TestBroker } from "../../support/test_broker.ts";

const ALL = Object.keys(ABILITIES) as Ability[];

/** Trials of the ffmpeg and ffprobe that these shell lines come before; `exit` in them ends it. */
class Bench implements AsyncDisposable {
  readonly folder = new TempFolder();
  readonly tempDir = join(this.folder.path, "tmp");
  readonly trials: ToolTrials;
  readonly logged: string[] = [];
  clockMs = 0;
  readonly #broker: TestBroker;

  constructor({ ffmpeg, ffprobe, cage = NO_CAGE }: {
    ffmpeg?: string;
    ffprobe?: string;
    cage?: Awaited<ReturnType<typeof cageOf>>;
  }) {
    Deno.mkdirSync(this.tempDir);
    const real = tools();
    const wrapped = (name: "ffmpeg" | "ffprobe", lines?: string) =>
      lines === undefined ? real[name] : this.folder.script(name, `${lines}\nexec ${real[name]} "$@"`);
    const places = { tempDir: this.tempDir, uploadRoot: this.tempDir, ingestRoots: [] };
    const programs = { ...real, ffmpeg: wrapped("ffmpeg", ffmpeg), ffprobe: wrapped("ffprobe", ffprobe) };
    this.#broker = new TestBroker(programs, places, cage);
    const quiet = world();
    const own = {
      ...quiet,
      monotonicMs: () => this.clockMs,
      log: {
        ...quiet.log,
        error: (message: string) => void this.logged.push(message),
        warn: (message: string) => void this.logged.push(message),
      },
    };
    const runner = this.#broker.client;
    this.trials = new ToolTrials({
      runner,
      tempDir: this.tempDir,
      writeFile: writeTempFile,
      world: own,
      ffmpeg: new AboutFfmpeg({ runner, world: own }),
    });
  }

  /** The abilities that are refused. */
  async refused(): Promise<Ability[]> {
    const refused: Ability[] = [];
    for (const ability of ALL) {
      await this.trials.require(ability).catch(({ code }) => {
        equal(code, "decoder_unusable");
        refused.push(ability);
      });
    }
    return refused;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.trials[Symbol.asyncDispose]();
    await this.#broker[Symbol.asyncDispose]();
    this.folder[Symbol.dispose]();
  }
}

/** Lines that make ffmpeg fail, with this message, where it is given the words. */
function failsOn(words: string, message: string): string {
  return `case " $* " in *" ${words} "*) echo "${message}" >&2; echo "Conversion failed!" >&2; exit 1;; esac`;
}

Deno.test("the machine's own ffmpeg can do everything, and its trials leave nothing behind", async () => {
  await using bench = new Bench({});
  deepEqual(await bench.refused(), [], bench.logged.join("\n"));
  deepEqual([...Deno.readDirSync(bench.tempDir)], []);
  deepEqual(bench.trials.faults, []);
});

Deno.test({
  ...needing(BUBBLEWRAP, "the same in the strongest cage"),
  fn: async () => {
    await using bench = new Bench({ cage: await cageOf("bubblewrap", tools()) });
    deepEqual(await bench.refused(), [], bench.logged.join("\n"));
  },
});

/** The abilities that fail, by what ffmpeg does not do. */
const LACKS: readonly (readonly [string, string, readonly Ability[]])[] = [
  ["-c:v libx264", "Unknown encoder 'libx264'", ["clip"]],
  ["-c:a aac", "Unknown encoder 'aac'", ["clip"]],
  ["-f mp4", "Requested output format 'mp4' is not known.", ["clip"]],
  ["-c:v mjpeg", "Unknown encoder 'mjpeg'", ["jpegs", "picture", "live_jpegs"]],
  ["-c:v rawvideo", "Unknown encoder 'rawvideo'", ["decode", "jpegs", "live_video"]],
  ["-f nut", "Requested output format 'nut' is not known.", ["decode", "jpegs", "live_video", "live_jpegs"]],
  ["-f framecrc", "Requested output format 'framecrc' is not known.", ["decode"]],
  ["-f s16le", "Requested output format 's16le' is not known.", ["sound", "live_sound"]],
  ["-f ivf", "Unknown input format: 'ivf'", ["live_video"]],
  ["-f jpeg_pipe", "Unknown input format: 'jpeg_pipe'", ["picture"]],
  ["-f ogg", "Unknown input format: 'ogg'", ["live_sound"]],
  ["-filter_complex_threads 1", "Unrecognized option 'filter_complex_threads'.", ["clip", "sound"]],
];

for (const [words, message, expected] of LACKS) {
  Deno.test(`an ffmpeg that refuses ${words} is refused for what needs it`, async () => {
    await using bench = new Bench({ ffmpeg: failsOn(words, message) });
    deepEqual(await bench.refused(), expected);
    deepEqual(
      bench.trials.faults,
      expected.map((ability) => ({ ability, cannot: ABILITIES[ability].does, reason: message })),
    );
    equal(bench.logged.length, expected.length);
    for (const line of bench.logged) ok(line.endsWith(message), line);
  });
}

Deno.test("an ffmpeg that ends well and gives nothing, or breaks down, can do nothing", async () => {
  for (const lines of ["exit 0", "kill -SEGV $$", "echo 'libavcodec.so.61: cannot open' >&2; exit 127"]) {
    await using bench = new Bench({ ffmpeg: lines });
    deepEqual(
      await bench.refused(),
      ALL.filter((ability) => ability !== "probe" && ability !== "version"),
      lines,
    );
  }
});

/** Lines that make ffmpeg tell another version. */
function ofVersion(version: string): string {
  return `case " $* " in *" -decoders "*) echo "ffmpeg version ${version} Copyright" >&2; echo ' VFS..D h264   H.264'; exit 0;; esac`;
}

Deno.test("a version that the service does not know is refused, whatever it can do", async () => {
  for (const version of ["4.4.2-0ubuntu0.22.04.1", "5.0.1", "10.0"]) {
    await using bench = new Bench({ ffmpeg: ofVersion(version) });
    await rejects(bench.trials.require("picture"), {
      ...{ code: "decoder_unusable", status: 503 },
      message: new RegExp(
        `it is version ${version.replaceAll(".", "\\.")}, and the service knows 5\\.1 to 9`,
      ),
    });
    deepEqual(bench.trials.faults.map(({ ability }) => ability), ["version"]);
    match(bench.logged.join(), /the service knows 5\.1 to 9/);
  }
  for (
    const version of [
      "5.1",
      "n9.0.2-17-g2a571b6068",
      "7.0.2-static",
      "N-118890-g0ee3ed1a2b",
      "2026-01-05-git-1",
    ]
  ) {
    await using bench = new Bench({ ffmpeg: ofVersion(version) });
    await bench.trials.require("picture");
    deepEqual([bench.trials.faults, bench.logged], [[], []], version);
  }
});

Deno.test("without ffprobe no film is looked into, and live media go on", async () => {
  await using bench = new Bench({ ffprobe: "echo 'ffprobe: version mismatch' >&2; exit 1" });
  deepEqual(await bench.refused(), ["probe", "decode", "jpegs", "clip", "sound"]);
  match(bench.trials.faults[0]!.reason, /version mismatch/);
});

Deno.test("an ffmpeg that tells nothing of its frames does not decode: damage would be missed", async () => {
  await using bench = new Bench({
    ffmpeg: `unset FFREPORT; for word; do shift; [ "$word" = -debug_ts ] || set -- "$@" "$word"; done`,
  });
  deepEqual(await bench.refused(), ["decode", "jpegs"]);
  match(bench.trials.faults[0]!.reason, /0 of 5 frames/);
});

Deno.test("each ability is tried once, and after a failure again a minute later", async () => {
  using asked = new TempFolder(); // a folder for each start, as a program may not write files
  await using bench = new Bench({
    ffmpeg: `mkdir ${asked.path}/$$; [ -e ${asked.path}/mended ] || { echo broken >&2; exit 1; }`,
  });
  const starts = () => asked.names().length;
  const require = () => bench.trials.require("picture");
  const refusal = { code: "decoder_unusable", status: 503, message: /make a picture smaller \(broken\)/ };
  await Promise.all([rejects(require(), refusal), rejects(require(), refusal)]);
  equal(starts(), 2); // one of them for its version
  Deno.mkdirSync(join(asked.path, "mended"));
  bench.clockMs = 59_999;
  await rejects(require(), refusal);
  bench.clockMs = 60_000;
  await require();
  deepEqual(bench.trials.faults, []);
  bench.clockMs = 1e9;
  await require();
  equal(starts(), 5); // with the folder that mends it
});

Deno.test("a codec that every ffmpeg decodes and this one does not is no fault of the film", async () => {
  await using bench = new Bench({
    ffmpeg: `case " $* " in *" -decoders "*) echo ' VFS..D vp8   VP8'; exit 0;; esac`,
  });
  await bench.trials.requireDecoder("vp8");
  await bench.trials.requireDecoder("cinepak");
  await rejects(bench.trials.requireDecoder("h264"), {
    code: "decoder_unusable",
    message: /no decoder of h264/,
  });
});
