/** The detectors of the service as a copy whose named numbers can be changed, run on recordings. */

import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import type { Detector } from "../../src/model/frames/detected_range.ts";
import { type Constant, constantsIn } from "../constants.ts";
import type { FrameRange } from "../scores/truth.ts";
import { faultsIn, rangesIn } from "./detected.ts";
import type { Recording } from "./recording.ts";

const DETECTION = fileURLToPath(new URL("../../src/media/detection/", import.meta.url));
/** Files from which all detectors of ranges get their measures; their numbers are those of the kernel. */
const SHARED = ["frame_history.ts", "range_sink.ts", "faults/artifact_measures.ts"];

/** A named number of one file of the detectors. */
export interface DetectorConstant extends Constant {
  readonly file: string;
}

interface Changeable {
  setConstant(name: string, value: number): void;
}

export class DetectionCopy {
  readonly #sources: ReadonlyMap<string, string>;
  readonly #modules: ReadonlyMap<string, Changeable>;
  readonly #ranges: typeof import("../../src/media/detection/range_detectors.ts");
  readonly #artifacts: typeof import("../../src/media/detection/faults/artifact_detector.ts");

  private constructor(sources: ReadonlyMap<string, string>, modules: ReadonlyMap<string, Changeable>) {
    this.#sources = sources;
    this.#modules = modules;
    this.#ranges = modules.get("range_detectors.ts") as never;
    this.#artifacts = modules.get("faults/artifact_detector.ts") as never;
  }

  /**
   * Loads a copy. `changes` has other texts for some files, such as weights that were fitted anew: names in
   * `src/media/detection`.
   */
  static async load(changes: Readonly<Record<string, string>> = {}): Promise<DetectionCopy> {
    const folder = await Deno.makeTempDir({ prefix: "service-detection-" });
    try {
      const sources = new Map<string, string>();
      for await (const name of filesIn("")) {
        sources.set(name, changes[name] ?? await Deno.readTextFile(join(DETECTION, name)));
      }
      for (const [name, source] of sources) {
        await Deno.mkdir(dirname(join(folder, name)), { recursive: true });
        await Deno.writeTextFile(join(folder, name), changeable(name, source));
      }
      const modules = new Map<string, Changeable>();
      for (const name of sources.keys()) {
        modules.set(name, await import(pathToFileURL(join(folder, name)).href) as Changeable);
      }
      return new DetectionCopy(sources, modules);
    } finally {
      await Deno.remove(folder, { recursive: true });
    }
  }

  /** The named numbers of a file and of those that it is made of. */
  constantsOf(entry: string): DetectorConstant[] {
    const files = new Set<string>([entry]);
    for (const file of files) {
      for (const [, path] of this.#sources.get(file)!.matchAll(/from "(\.\.?\/[^"]+)"/g)) {
        const name = join(dirname(file), path!);
        if (this.#sources.has(name) && !SHARED.includes(name)) files.add(name);
      }
    }
    return [...files].flatMap((file) =>
      constantsIn(this.#sources.get(file)!).map((constant) => ({ ...constant, file }))
    );
  }

  set({ file, name }: DetectorConstant, value: number): void {
    this.#modules.get(file)!.setConstant(name, value);
  }

  /** The ranges of one type in each recording. */
  rangesOf(recordings: Iterable<Recording>, type: Detector): Generator<FrameRange[]> {
    return rangesIn(recordings, (cuts) => new this.#ranges.RangeDetectors(cuts, [type]));
  }

  /** The faulty frames of each recording, joined to ranges, without those that begin in its gradual transitions. */
  faultsOf(
    recordings: Iterable<Recording>,
    transitions: readonly (readonly FrameRange[])[],
  ): Generator<FrameRange[]> {
    return faultsIn(recordings, transitions, new this.#artifacts.ArtifactDetector());
  }
}

/** Paths of the files in a folder of the detectors and in those below it, from `DETECTION` on. */
async function* filesIn(folder: string): AsyncGenerator<string> {
  for await (const { name, isDirectory } of Deno.readDir(join(DETECTION, folder))) {
    const path = join(folder, name);
    if (isDirectory) yield* filesIn(path);
    else yield path;
  }
}

/** The source with named numbers that `setConstant` changes; files outside the folder are those of the project. */
function changeable(name: string, source: string): string {
  const cases = constantsIn(source).map(({ name, at, text }) => {
    const rest = source.slice(at + text.length, source.indexOf(";", at));
    return `case "${name}": ${name} = value${rest}; break;`;
  });
  const body = source
    .replaceAll(/from "(\.\.\/[^"]+)"/g, (text, path) => {
      const target = join(dirname(name), path);
      return target.startsWith("..") ? `from "${pathToFileURL(join(DETECTION, target)).href}"` : text;
    })
    .replaceAll(/^((?:export )?)const ([A-Z][A-Z0-9_]*(?:: \w+)? = -?[\d_.]+[;\s])/gm, "$1let $2");
  return `${body}\nexport function setConstant(name: string, value: number): void {\n  switch (name) { ${
    cases.join(" ")
  } }\n}\n`;
}
