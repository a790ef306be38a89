/** An enrolled edge device with its release server, its hook, and the key that signs its manifests. */

import { createHash } from "node:crypto";
import { join } from "node:path";
import { enroll, type Enrollment } from "../../../updater/device/enrollment.ts";
import { newKeyPair, readPrivateKey } from "../../../updater/device/keys.ts";
import { MACHINE, type Machine } from "../../../updater/device/machine.ts";
import { StateFolder } from "../../../updater/device/state_folder.ts";
import { Updater } from "../../../updater/device/updater.ts";
import { type Manifest, signManifest, type Stage } from "../../../updater/release/manifest.ts";
import type { State } from "../../../updater/release/state.ts";
import { TempFolder } from "../media.ts";
import { PROJECT_ROOT } from "../service.ts";
import { ReleaseServer } from "./release_server.ts";

export const GOOD = { samples: 100, success_rate: 0.99, p95_ms: 80, rss_bytes: 1_000_000 };

/** What the unit starts, without the program and the subcommand. */
const UNIT_COMMAND = /^ExecStart=\S+ (.*) watch$/m.exec(
  Deno.readTextFileSync(join(PROJECT_ROOT, "deploy/systemd/edge-updater.service")),
)![1]!.split(" ");

interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export class EdgeDevice implements AsyncDisposable {
  readonly folder = new TempFolder();
  readonly server = new ReleaseServer();
  readonly state = new StateFolder(join(this.folder.path, "state"));
  readonly said: string[] = [];
  readonly #enrollment: Enrollment;
  readonly #privateKey: string;

  private constructor(publicPem: string, privatePem: string) {
    this.#privateKey = this.folder.file("release.key", privatePem);
    Deno.chmodSync(this.#privateKey, 0o600);
    this.#enrollment = {
      hardware_cohort: "jetson",
      model_id: "detector",
      public_keys: [publicPem],
      hook: this.hook(""),
      manifest_uri: this.server.url("/manifest.json"),
      ca: this.server.ca,
    };
  }

  static async open(): Promise<EdgeDevice> {
    const { publicPem, privatePem } = await newKeyPair();
    const device = new EdgeDevice(publicPem, privatePem);
    await enroll(device.state, device.#enrollment, false);
    return device;
  }

  /** Replaces the hook: it writes down its call, then runs these shell lines. */
  hook(lines: string): string {
    return this.folder.script("hook", `echo "$1 \${2#*/models/} $3" >>"${this.folder.path}/calls"\n${lines}`);
  }

  /** Calls of the hook so far: action, path of the model in the folder of models, release. */
  calls(): string[] {
    try {
      return Deno.readTextFileSync(join(this.folder.path, "calls")).trimEnd().split("\n");
    } catch {
      return [];
    }
  }

  models(): string[] {
    const folder = join(this.state.path, "models");
    return [...Deno.readDirSync(folder)].flatMap(({ name }) =>
      [...Deno.readDirSync(join(folder, name))].map((file) => `${name}/${file.name}`)
    ).sort();
  }

  parts(): string[] {
    return [...Deno.readDirSync(join(this.state.path, "download"))].map(({ name }) => name);
  }

  releases(): Record<"incoming" | "candidate" | "current" | "previous", string | null> {
    const { incoming, candidate, current, previous }: State = this.state.readState();
    return {
      incoming: incoming?.release_id ?? null,
      candidate: candidate ? `${candidate.manifest.release_id} in ${candidate.stage}` : null,
      current: current?.release_id ?? null,
      previous: previous?.release_id ?? null,
    };
  }

  /** A manifest of a new artifact that the server has, not signed. */
  draft(sequence: number, releaseId: string, changes: Partial<Manifest> = {}): Manifest {
    const path = `/${releaseId}.onnx`;
    const served = this.server.files.get(path);
    const bytes = served instanceof Uint8Array ? served : artifactBytes(sequence);
    if (!served) this.server.files.set(path, bytes);
    return {
      schema_version: 2,
      sequence,
      release_id: releaseId,
      model_id: "detector",
      hardware_cohort: "jetson",
      stage: "active",
      artifact: {
        uri: this.server.url(path),
        sha256: createHash("sha256").update(bytes).digest("hex"),
        size_bytes: bytes.byteLength,
      },
      acceptance: {
        minimum_samples: 100,
        minimum_success_rate: 0.99,
        maximum_p95_ms: 80,
        maximum_rss_bytes: 1_000_000,
      },
      signature: "",
      ...changes,
    };
  }

  async sign(manifest: Manifest): Promise<string> {
    return await signManifest(manifest, await readPrivateKey(this.#privateKey));
  }

  async manifest(sequence: number, releaseId: string, changes: Partial<Manifest> = {}): Promise<string> {
    return await this.sign(this.draft(sequence, releaseId, changes));
  }

  /** Puts a manifest where `watch` looks. */
  publish(manifestText: string): void {
    this.server.files.set("/manifest.json", new TextEncoder().encode(manifestText));
  }

  updater(machine: Partial<Machine> = {}, enrollment: Partial<Enrollment> = {}): Updater {
    return new Updater(this.state, { ...this.#enrollment, ...enrollment }, {
      machine: { ...MACHINE, ...machine },
      say: (text) => this.said.push(text),
      signal: new AbortController().signal,
    });
  }

  async report(releaseId: string, stage: Stage, figures: Partial<typeof GOOD> = {}): Promise<void> {
    await this.updater().report({ release_id: releaseId, stage, ...GOOD, ...figures });
  }

  /** From its manifest to the place of the current release. */
  async bringToCurrent(sequence: number, releaseId: string): Promise<void> {
    await this.updater().apply(await this.manifest(sequence, releaseId));
    await this.report(releaseId, "shadow");
    await this.report(releaseId, "canary");
  }

  /** The program in a process of its own, with the permissions of its unit of systemd. */
  spawn(args: readonly string[], stdin: "null" | "piped" = "null"): Deno.ChildProcess {
    const words = UNIT_COMMAND.map((word) =>
      word.replace("/opt/service", PROJECT_ROOT).replace("/var/lib/edge-updater", this.state.path)
    );
    return this.#started(Deno.execPath(), [...words, ...args], stdin);
  }

  async run(...args: string[]): Promise<Ended> {
    return await endOf(this.spawn(args));
  }

  /** By the script that people start. */
  async runScript(...args: string[]): Promise<Ended> {
    return await endOf(this.#started(join(PROJECT_ROOT, "scripts/updater"), args, "null"));
  }

  #started(program: string, args: string[], stdin: "null" | "piped"): Deno.ChildProcess {
    const env = { EDGE_UPDATER_STATE_DIR: this.state.path };
    return new Deno.Command(program, { args, env, stdin, stdout: "piped", stderr: "piped" }).spawn();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.server[Symbol.asyncDispose]();
    this.folder[Symbol.dispose]();
  }
}

/** Bytes that differ from release to release. */
export function artifactBytes(seed: number, size = 300_000): Uint8Array<ArrayBuffer> {
  return Uint8Array.from({ length: size }, (_, index) => (index * 31 + (index >> 8) * seed + seed) & 0xff);
}

async function endOf(child: Deno.ChildProcess): Promise<Ended> {
  const { code, stdout, stderr } = await child.output();
  const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
  return { code, stdout: text(stdout), stderr: text(stderr) };
}
