/** How the state of a device changes. Pure: nothing here reads a file or starts a program.
 *
 *     manifest ─→ incoming ─→ candidate in shadow ─→ candidate in canary ─→ current ─→ previous
 *                  download    stage_shadow           stage_canary           activate
 *
 * A failed report or a hook that fails takes the release back out with `rollback`. See docs/edge.md#stages.
 */

import { createHash } from "node:crypto";
import { CliError } from "../../cli/failure.ts";
import { LIMITS } from "../../src/contract/limits.ts";
import { identityOf, type Manifest, manifestText, STAGES } from "./manifest.ts";
import type { Judgment, Report } from "./report.ts";
import type { Pending, State } from "./state.ts";

/** What a device is: only manifests for it are taken. */
export interface DeviceKind {
  readonly hardware_cohort: string;
  readonly model_id: string;
  readonly artifactBytesMax: number;
}

/** A new state with one line that says what happened. */
export interface Step {
  readonly state: State;
  readonly said: string;
}

/** Takes a manifest whose signature is verified, or throws with the rule that it breaks. Without a Step it is the newest one again. */
export function accepted(state: State, manifest: Manifest, device: DeviceKind): Step | null {
  const { release_id, sequence } = manifest;
  const digest = sha256(manifestText(manifest, ""));
  for (const name of ["hardware_cohort", "model_id"] as const) {
    if (manifest[name] !== device[name]) {
      throw refusal(`${name}: must be ${device[name]} as this device is enrolled, got ${manifest[name]}`);
    }
  }
  if (manifest.artifact.size_bytes > device.artifactBytesMax) {
    throw refusal(
      `artifact.size_bytes: must be at most ${device.artifactBytesMax} (SERVICE_EDGE_MAX_ARTIFACT_BYTES), got ${manifest.artifact.size_bytes}`,
    );
  }
  const isNewest = sequence === state.accepted?.sequence && digest === state.accepted.digest;
  if (isNewest) return null;
  const rejection = state.rejected.find((one) => one.release_id === release_id);
  if (rejection) {
    throw refusal(
      `release_id: ${release_id} was rejected on this device (${rejection.reason}); give the next release another one`,
    );
  }
  if (state.accepted && sequence <= state.accepted.sequence) {
    throw refusal(
      `sequence: must be above ${state.accepted.sequence}, the highest that this device has accepted, got ${sequence}`,
    );
  }
  const identity = sha256(identityOf(manifest));
  const first = state.known.find((one) => one.release_id === release_id);
  if (first && first.identity !== identity) {
    throw refusal(
      `release_id: ${release_id} belongs to its first manifest, and this one has another model_id, hardware_cohort, artifact or acceptance`,
    );
  }
  const known = [...state.known.filter((one) => one !== first), { release_id, identity }];
  const taken: State = {
    ...state,
    accepted: { sequence, digest },
    known: known.slice(-LIMITS.edge.releasesRemembered),
  };
  if (state.candidate?.manifest.release_id === release_id) {
    return {
      state: { ...taken, incoming: null, candidate: { ...state.candidate, manifest } },
      said: `${release_id}: may now go as far as ${manifest.stage}`,
    };
  }
  if (state.current?.release_id === release_id) {
    // It is what is wanted, so that nothing else is on its way any more.
    const pending = state.candidate ? rollbackOf(state, state.candidate.manifest.release_id) : null;
    return {
      state: { ...taken, incoming: null, current: manifest, pending },
      said: `${release_id}: is current already`,
    };
  }
  return {
    state: { ...taken, incoming: manifest },
    said: `${release_id}: accepted with sequence ${sequence}`,
  };
}

/** The hook call that is due: one that was begun, or the next one. `obtained` is the release whose artifact is here and verified. */
export function nextCall(state: State, obtained: string | null): Pending | null {
  if (state.pending) return state.pending;
  const { incoming, candidate } = state;
  if (incoming && incoming.release_id === obtained) {
    return candidate
      ? rollbackOf(state, candidate.manifest.release_id)
      : { action: "stage_shadow", release_id: obtained, withdraws: null };
  }
  if (!candidate?.has_passed || !mayGoOn(candidate)) return null;
  const action = candidate.stage === "shadow" ? "stage_canary" : "activate";
  return { action, release_id: candidate.manifest.release_id, withdraws: null };
}

/** The pending call has succeeded. */
export function succeeded(state: State): Step {
  const { action, release_id, withdraws } = state.pending!;
  const settled: State = { ...state, pending: null };
  switch (action) {
    case "stage_shadow":
      return {
        state: {
          ...settled,
          incoming: null,
          candidate: { manifest: state.incoming!, stage: "shadow", has_passed: false },
        },
        said: `${release_id}: in shadow`,
      };
    case "stage_canary":
      return {
        state: { ...settled, candidate: { ...state.candidate!, stage: "canary", has_passed: false } },
        said: `${release_id}: in canary`,
      };
    case "activate":
      return {
        state: { ...settled, candidate: null, current: state.candidate!.manifest, previous: state.current },
        said: `${release_id}: current`,
      };
    case "rollback": {
      const said = `${withdraws}: taken out of use, ${
        release_id === null ? "and no other release is there" : `${release_id} is current`
      }`;
      return { state: withdrawn(settled, withdraws!), said };
    }
  }
}

/** The hook did not do what was asked: the release is rejected and taken out of use. */
export function failed(state: State, reason: string, at: string): Step {
  const { action, release_id } = state.pending!;
  return rejected(state, release_id!, `the hook failed at ${action}: ${reason}`, at);
}

/** What follows from a report that was judged; throws where it is not about a release that runs. */
export function reported(state: State, report: Report, { verdict, reasons }: Judgment, at: string): Step {
  const { release_id, stage } = report;
  const isCurrent = stage === "active";
  const why = reasons.join(", ");
  if (verdict === "too few samples") return { state, said: `${release_id}: stays in ${stage}, ${why}` };
  if (verdict === "failed") {
    if (isCurrent && !state.previous) {
      throw new CliError(
        "invalid",
        `${release_id}: fails (${why}), but stays current as no previous release is there`,
      );
    }
    return rejected(state, release_id, `it failed in ${stage}: ${why}`, at);
  }
  if (isCurrent) return { state, said: `${release_id}: passed in active` };
  const candidate = { ...state.candidate!, has_passed: true };
  const end = mayGoOn(candidate)
    ? ""
    : `, and its manifest lets it go no further than ${candidate.manifest.stage}`;
  return { state: { ...state, candidate }, said: `${release_id}: passed in ${stage}${end}` };
}

/** The manifest that a report is about; it has to name the stage in which the release is now. */
export function reportedRelease(state: State, { release_id, stage }: Report): Manifest {
  const { candidate, current } = state;
  const where = candidate?.manifest.release_id === release_id
    ? candidate.stage
    : current?.release_id === release_id
    ? "active"
    : null;
  if (where === null) {
    throw new CliError(
      "invalid",
      `the report is refused: release_id: ${release_id} is neither candidate nor current`,
    );
  }
  if (where !== stage) {
    throw new CliError(
      "invalid",
      `the report is refused: stage: must be ${where}, where ${release_id} is now, got ${stage}`,
    );
  }
  return stage === "active" ? current! : candidate!.manifest;
}

/** The releases whose files stay. */
export function keptReleases({ incoming, candidate, current, previous }: State): Manifest[] {
  return [incoming, candidate?.manifest, current, previous].filter((one) => one != null);
}

function mayGoOn({ stage, manifest }: NonNullable<State["candidate"]>): boolean {
  return STAGES.indexOf(manifest.stage) > STAGES.indexOf(stage);
}

function rejected(state: State, releaseId: string, reason: string, at: string): Step {
  const others = state.rejected.filter((one) => one.release_id !== releaseId);
  const all = [...others, { release_id: releaseId, reason, at }].slice(-LIMITS.edge.releasesRemembered);
  return {
    state: { ...state, rejected: all, pending: rollbackOf(state, releaseId) },
    said: `${releaseId}: rejected, as ${reason}`,
  };
}

/** The call that takes a release out of use: the hook gets what is to be used from then on. */
function rollbackOf({ current, previous }: State, releaseId: string): Pending {
  const target = current?.release_id === releaseId ? previous : current;
  return { action: "rollback", release_id: target?.release_id ?? null, withdraws: releaseId };
}

function withdrawn(state: State, releaseId: string): State {
  const { incoming, candidate, current, previous } = state;
  if (current?.release_id !== releaseId) {
    return {
      ...state,
      incoming: incoming?.release_id === releaseId ? null : incoming,
      candidate: candidate?.manifest.release_id === releaseId ? null : candidate,
      // It was in use before, and is no release to go back to any more.
      previous: previous?.release_id === releaseId ? null : previous,
    };
  }
  // After a rollback nothing but its model runs, so that a candidate has to begin again.
  return {
    ...state,
    current: previous,
    previous: null,
    candidate: null,
    incoming: incoming ?? candidate?.manifest ?? null,
  };
}

function refusal(fault: string): CliError {
  return new CliError("invalid", `the manifest is refused: ${fault}`);
}

function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
