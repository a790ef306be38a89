/** The machine's ffmpeg for services under test, which answers the question of every start from a file. */

import { join } from "node:path";
import { programOnPath } from "./needs.ts";

/**
 * A service asks ffmpeg at its start which decoders it has. Loading ffmpeg's libraries for that costs 0.13 s
 * of processor time (measured in November 2026), and the suite starts two hundred services. The answer is the
 * real one; all other calls go to ffmpeg itself.
 */
export class QuickFfmpeg implements Disposable {
  readonly #folder = Deno.realPathSync(Deno.makeTempDirSync({ prefix: "service-test-ffmpeg-" }));
  readonly path = join(this.#folder, "ffmpeg");

  constructor() {
    const ffmpeg = programOnPath("ffmpeg");
    if (ffmpeg === null) throw new Error("ffmpeg is not on PATH");
    const answer = join(this.#folder, "decoders");
    Deno.writeFileSync(answer, decodersOf(ffmpeg));
    Deno.writeTextFileSync(
      this.path,
      `#!/bin/sh\ncase " $* " in *" -decoders "*) exec cat ${answer};; esac\nexec ${ffmpeg} "$@"\n`,
      { mode: 0o755 },
    );
  }

  [Symbol.dispose](): void {
    Deno.removeSync(this.#folder, { recursive: true });
  }
}

/** Asked once for each run of the suite, whose files share TEST_RUN_DIR. */
function decodersOf(ffmpeg: string): Uint8Array {
  const shared = Deno.env.get("TEST_RUN_DIR");
  const path = shared && join(shared, "decoders");
  if (path) {
    try {
      return Deno.readFileSync(path);
    } catch {
      // this is the first file that asks
    }
  }
  const { stdout } = new Deno.Command(ffmpeg, { args: ["-nostdin", "-v", "error", "-decoders"] })
    .outputSync();
  if (path) {
    const draft = `${path}.${Deno.pid}`;
    Deno.writeFileSync(draft, stdout);
    Deno.renameSync(draft, path); // whole, for files that run side by side
  }
  return stdout;
}
