/** Brings a device on: takes a manifest, gets its artifact, calls the hook, and writes each step down before it is taken. */

import { CliError } from "../../cli/failure.ts";
import { readManifest, verifyManifest } from "../release/manifest.ts";
import { judged, type Report } from "../release/report.ts";
import type { State } from "../release/state.ts";
import {
  accepted,
  failed,
  keptReleases,
  nextCall,
  reported,
  reportedRelease,
  type Step,
  succeeded,
} from "../release/steps.ts";
import { isArtifact, obtainArtifact } from "./artifact.ts";
import { type Enrollment, keysOf, kindOf } from "./enrollment.ts";
import { runHook } from "./hook.ts";
import type { Machine } from "./machine.ts";
import type { StateFolder } from "./state_folder.ts";

export interface Surroundings {
  readonly machine: Machine;
  /** Gets one line for each thing that has happened. */
  readonly say: (text: string) => void;
  readonly signal: AbortSignal;
}

export class Updater {
  readonly #folder: StateFolder;
  readonly #enrollment: Enrollment;
  readonly #machine: Machine;
  readonly #say: (text: string) => void;
  readonly #signal: AbortSignal;

  constructor(folder: StateFolder, enrollment: Enrollment, { machine, say, signal }: Surroundings) {
    this.#folder = folder;
    this.#enrollment = enrollment;
    this.#machine = machine;
    this.#say = say;
    this.#signal = signal;
  }

  /** Ends what was begun, then takes the manifest and goes on as far as it can. False where it is the newest one already. */
  async apply(manifestText: string): Promise<boolean> {
    const manifest = readManifest(manifestText);
    await verifyManifest(manifest, await keysOf(this.#enrollment));
    let step: Step | null;
    {
      using _lock = await this.#folder.lockState(this.#signal);
      step = accepted(await this.#carryOn(null), manifest, kindOf(this.#enrollment));
      if (step) this.#take(step);
      await this.#carryOn(null);
    }
    await this.#bringIncoming();
    return step !== null;
  }

  /** Without a new manifest: ends what was begun, and gets the artifact that is still to come. */
  async resume(): Promise<void> {
    {
      using _lock = await this.#folder.lockState(this.#signal);
      await this.#carryOn(null);
    }
    await this.#bringIncoming();
  }

  async report(report: Report): Promise<void> {
    using _lock = await this.#folder.lockState(this.#signal);
    const state = await this.#carryOn(null);
    const manifest = reportedRelease(state, report);
    this.#take(reported(state, report, judged(report, manifest), now()));
    await this.#carryOn(null);
  }

  /** The state may change while an artifact arrives, so that a report need not wait for it. */
  async #bringIncoming(): Promise<void> {
    const { incoming } = this.#folder.readState();
    if (!incoming) return;
    using downloading = this.#folder.tryLockDownload();
    if (!downloading) throw new CliError("failed", "another updater is getting an artifact");
    const { artifact, release_id } = incoming;
    const isThere = await isArtifact(artifact, this.#folder.modelPath(incoming), this.#signal);
    if (!isThere) {
      const trust = { ca: this.#enrollment.ca, signal: this.#signal };
      const count = await obtainArtifact(incoming, this.#folder.partPath(incoming), trust, this.#machine);
      this.#say(`${release_id}: artifact verified, ${count} bytes received`);
    }
    using _lock = await this.#folder.lockState(this.#signal);
    const state = this.#folder.readState();
    // Another manifest may have taken its place.
    const isWanted = state.incoming?.release_id === release_id;
    if (isWanted && !isThere) this.#folder.publish(incoming);
    await this.#carryOn(isWanted ? release_id : null);
  }

  /** Calls the hook as long as a call is due. A rollback that fails is called again at the next start, before anything else. */
  async #carryOn(obtained: string | null): Promise<State> {
    let state = this.#folder.readState();
    let hookFault: string | undefined;
    for (let call = nextCall(state, obtained); call; call = nextCall(state, obtained)) {
      if (!state.pending) this.#signal.throwIfAborted();
      state = { ...state, pending: call };
      this.#folder.writeState(state);
      const fault = await this.#call(state);
      if (fault === undefined) state = this.#take(succeeded(state));
      else if (call.action === "rollback") {
        throw new CliError("failed", `the hook failed at rollback: ${fault}; it will be called again`);
      } else {
        hookFault = `${call.release_id} is rejected, as the hook failed at ${call.action}: ${fault}`;
        state = this.#take(failed(state, fault, now()));
      }
    }
    this.#folder.collect(state);
    if (hookFault !== undefined) throw new CliError("failed", hookFault);
    return state;
  }

  async #call(state: State): Promise<string | undefined> {
    const { action, release_id } = state.pending!;
    const manifest = keptReleases(state).find((one) => one.release_id === release_id);
    const path = manifest ? this.#folder.modelPath(manifest) : "";
    this.#say(`hook: ${action} ${release_id ?? "(no release)"}`);
    return await runHook(
      this.#enrollment.hook,
      [action, path, release_id ?? ""],
      { lockPath: this.#folder.file("hook.lock"), timeoutMs: this.#machine.hookTimeoutMs },
    );
  }

  #take({ state, said }: Step): State {
    this.#folder.writeState(state);
    this.#say(said);
    return state;
  }
}

function now(): string {
  return new Date().toISOString();
}
