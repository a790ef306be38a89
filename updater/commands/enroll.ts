/** `enroll`: says what the device is. */

import { enroll } from "../device/enrollment.ts";
import { fingerprint, readText } from "../device/keys.ts";
import type { Command } from "../session.ts";

export const enrollDevice: Command = async ({ out, folder }, _args, options) => {
  const { publicKey, cohort, modelId, hook, manifestUri, ca, replace } = options;
  const publicKeys = (publicKey as readonly string[]).map(readText);
  await enroll(folder, {
    hardware_cohort: cohort as string,
    model_id: modelId as string,
    public_keys: publicKeys,
    hook: hook as string,
    manifest_uri: manifestUri as string,
    ca: ca === undefined ? null : readText(ca as string),
  }, replace === true);
  const fingerprints = await Promise.all(publicKeys.map(fingerprint));
  const said = {
    state_dir: folder.path,
    hardware_cohort: cohort as string,
    public_keys: fingerprints.join(", "),
  };
  out.record(said, Object.entries(said), folder.path);
};
