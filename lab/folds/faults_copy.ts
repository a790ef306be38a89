/** The detectors of faults as a copy whose named numbers can be changed, run on recordings. */

import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { type Constant, constantsIn } from "../constants.ts";
import type { FrameRange } from "../scores/truth.ts";
import type { Change } from "./chosen_constants.ts";
import { faultsIn } from "./detected.ts";
import type { Recording } from "./recording.ts";

const FAULTS = fileURLToPath(new URL("../../src/media/detection/faults/", import.meta.url));
/** The file from which all of them get their measures; its numbers are those of the kernel. */
const MEASURES = "artifact_measures.ts";

interface Changeable {
  setConstant(name: string, value: number): void;
}

export class FaultsCopy {
  /** The named numbers, each with its file before its name. */
  readonly constants: readonly Constant[];
  readonly #modules: ReadonlyMap<string, Changeable>;
  readonly #detectors: typeof import("../../src/media/detection/faults/artifact_detector.ts");

  private constructor(constants: readonly Constant[], modules: ReadonlyMap<string, Changeable>) {
    this.constants = constants;
    this.#modules = modules;
    this.#detectors = modules.get("artifact_detector.ts") as never;
  }

  static async load(): Promise<FaultsCopy> {
    const folder = await Deno.makeTempDir({ prefix: "service-faults-" });
    try {
      const names = (await Array.fromAsync(Deno.readDir(FAULTS))).map(({ name }) => name).sort();
      const constants: Constant[] = [];
      for (const file of names) {
        const source = await Deno.readTextFile(join(FAULTS, file));
        await Deno.writeTextFile(join(folder, file), changeable(source));
        if (file === MEASURES) continue;
        constants.push(...constantsIn(source).map((each) => ({ ...each, name: `${file} ${each.name}` })));
      }
      const modules = new Map<string, Changeable>();
      for (const name of names) {
        modules.set(name, await import(pathToFileURL(join(folder, name)).href) as Changeable);
      }
      return new FaultsCopy(constants, modules);
    } finally {
      await Deno.remove(folder, { recursive: true });
    }
  }

  /**
   * The faulty frames of each recording, joined to ranges, without those that begin in its gradual
   * transitions; afterwards all numbers are as they were.
   */
  *faultsWith(
    changes: readonly Change[],
    recordings: Iterable<Recording>,
    transitions: readonly (readonly FrameRange[])[],
  ): Generator<FrameRange[]> {
    for (const { constant: { name }, value } of changes) this.#set(name, value);
    try {
      yield* faultsIn(recordings, transitions, new this.#detectors.ArtifactDetector());
    } finally {
      for (const { constant: { name, value } } of changes) this.#set(name, value);
    }
  }

  #set(name: string, value: number): void {
    const [file, constant] = name.split(" ");
    this.#modules.get(file!)!.setConstant(constant!, value);
  }
}

/**
 * The source with named numbers that `setConstant` changes; files outside the folder are those of the
 * project.
 */
function changeable(source: string): string {
  const cases = constantsIn(source).map(({ name, at, text }) => {
    const rest = source.slice(at + text.length, source.indexOf(";", at));
    return `case "${name}": ${name} = value${rest}; break;`;
  });
  const body = source
    .replaceAll(/from "(\.\.\/[^"]+)"/g, (_, path) => `from "${pathToFileURL(join(FAULTS, path)).href}"`)
    .replaceAll(/^((?:export )?)const ([A-Z][A-Z0-9_]*(?:: \w+)? = -?[\d_.]+[;\s])/gm, "$1let $2");
  return `${body}\nexport function setConstant(name: string, value: number): void {\n  switch (name) { ${
    cases.join(" ")
  } }\n}\n`;
}
