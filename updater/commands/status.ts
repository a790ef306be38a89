/** `status`: the releases of the device, for people and as JSON. It changes nothing and waits for nobody. */

import { readEnrollment } from "../device/enrollment.ts";
import { fingerprint } from "../device/keys.ts";
import type { StateFolder } from "../device/state_folder.ts";
import type { Manifest } from "../release/manifest.ts";
import type { Command } from "../session.ts";

const REJECTED_SHOWN = 10;

export const status: Command = async ({ out, folder }) => {
  const enrollment = readEnrollment(folder);
  const state = folder.readState();
  const { incoming, candidate, current, previous, pending, accepted, rejected } = state;
  const shown = {
    state_dir: folder.path,
    hardware_cohort: enrollment.hardware_cohort,
    model_id: enrollment.model_id,
    manifest_uri: enrollment.manifest_uri,
    hook: enrollment.hook,
    public_keys: await Promise.all(enrollment.public_keys.map(fingerprint)),
    highest_sequence: accepted?.sequence ?? 0,
    incoming: incoming && { ...releaseOf(folder, incoming), received_bytes: receivedBytes(folder, incoming) },
    candidate: candidate && {
      ...releaseOf(folder, candidate.manifest),
      stage: candidate.stage,
      has_passed: candidate.has_passed,
      goes_as_far_as: candidate.manifest.stage,
      acceptance: candidate.manifest.acceptance,
    },
    current: current && releaseOf(folder, current),
    previous: previous && releaseOf(folder, previous),
    pending,
    rejected: rejected.slice(-REJECTED_SHOWN).toReversed(),
  };
  const release = (one: { release_id: string; sequence: number } | null) =>
    one ? `${one.release_id} (sequence ${one.sequence})` : "–";
  out.record(shown, [
    ["device", `${shown.hardware_cohort}, ${shown.model_id}`],
    ["manifests", `${shown.manifest_uri}, keys ${shown.public_keys.join(", ")}`],
    ["highest", `sequence ${shown.highest_sequence}`],
    [
      "incoming",
      shown.incoming &&
      `${release(shown.incoming)}, ${shown.incoming.received_bytes} of ${shown.incoming.size_bytes} bytes`,
    ],
    [
      "candidate",
      shown.candidate &&
      `${release(shown.candidate)} in ${shown.candidate.stage}${
        shown.candidate.has_passed ? ", passed" : ""
      }, goes as far as ${shown.candidate.goes_as_far_as}`,
    ],
    ["current", release(shown.current)],
    ["previous", release(shown.previous)],
    [
      "hook",
      pending && `${pending.action} ${pending.release_id ?? "(no release)"} was begun and is not done`,
    ],
    ...shown.rejected.map((one) => ["rejected", `${one.release_id} at ${one.at}: ${one.reason}`] as const),
  ], current?.release_id ?? "");
};

function releaseOf(folder: StateFolder, manifest: Manifest) {
  const { release_id, sequence, artifact } = manifest;
  return {
    release_id,
    sequence,
    sha256: artifact.sha256,
    size_bytes: artifact.size_bytes,
    path: folder.modelPath(manifest),
  };
}

function receivedBytes(folder: StateFolder, manifest: Manifest): number {
  for (const path of [folder.modelPath(manifest), folder.partPath(manifest)]) {
    try {
      return Deno.statSync(path).size;
    } catch {
      // Not there yet.
    }
  }
  return 0;
}
