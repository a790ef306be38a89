/** What a device is enrolled as: its cohort and model, whose manifests it takes and from where, and its hook. */

import { isAbsolute } from "node:path";
import { z } from "zod";
import { CliError } from "../../cli/failure.ts";
import { SETTINGS } from "../../src/contract/settings.ts";
import { LIMITS } from "../../src/contract/limits.ts";
import { field, modelField, nameField, readFields } from "../release/field_rules.ts";
import type { DeviceKind } from "../release/steps.ts";
import { publicKeyOf, statOf } from "./keys.ts";
import type { StateFolder } from "./state_folder.ts";

const ENROLLMENT = z.strictObject({
  hardware_cohort: nameField,
  model_id: modelField,
  /** PEM; a manifest may be signed by any of them, so that a key can be replaced by the next one. */
  public_keys: field<string[]>(
    `1 to ${LIMITS.edge.publicKeysMax} public keys`,
    (value) => Array.isArray(value) && value.length >= 1 && value.length <= LIMITS.edge.publicKeysMax,
  ),
  hook: field<string>("an absolute path", (value) => typeof value === "string" && isAbsolute(value)),
  manifest_uri: field<string>("an https or file address", isManifestUri),
  /** Certificates in PEM that are trusted besides those of Deno. */
  ca: z.string().nullable(),
});

export type Enrollment = z.infer<typeof ENROLLMENT>;

/** Checks all that can be checked now, and keeps it. */
export async function enroll(
  folder: StateFolder,
  enrollment: Enrollment,
  mayReplace: boolean,
): Promise<void> {
  const checked = readFields("the enrollment", JSON.stringify(enrollment), ENROLLMENT);
  for (const pem of checked.public_keys) {
    if (!await publicKeyOf(pem)) {
      throw new CliError("usage", "--public-key must be a file with an Ed25519 public key in PEM");
    }
  }
  checkHook(checked.hook);
  if (checked.ca !== null && !checked.ca.includes("BEGIN CERTIFICATE")) {
    throw new CliError("usage", "--ca must be a file with certificates in PEM");
  }
  folder.make();
  const isEnrolled = findEnrollment(folder) !== null;
  if (isEnrolled && !mayReplace) {
    throw new CliError(
      "usage",
      `${folder.path} is enrolled already`,
      "--replace changes the enrollment; the releases stay",
    );
  }
  if (!isEnrolled) folder.writeFirstState();
  folder.writeFile("enrollment.json", JSON.stringify(checked));
}

export function readEnrollment(folder: StateFolder): Enrollment {
  const enrollment = findEnrollment(folder);
  if (!enrollment) throw new CliError("usage", `${folder.path} is not enrolled`, "`enroll` comes first");
  folder.check();
  return enrollment;
}

export async function keysOf({ public_keys }: Enrollment): Promise<CryptoKey[]> {
  const keys = await Promise.all(public_keys.map(publicKeyOf));
  return keys.filter((key) => key !== null);
}

/** With the setting of the environment. */
export function kindOf({ hardware_cohort, model_id }: Enrollment): DeviceKind {
  const { parser, default: standard } = SETTINGS.SERVICE_EDGE_MAX_ARTIFACT_BYTES;
  const text = Deno.env.get("SERVICE_EDGE_MAX_ARTIFACT_BYTES") ?? standard!;
  const artifactBytesMax = parser.read(text);
  if (artifactBytesMax === undefined) {
    throw new CliError(
      "usage",
      `SERVICE_EDGE_MAX_ARTIFACT_BYTES must be ${parser.rule}, got ${JSON.stringify(text)}`,
    );
  }
  return { hardware_cohort, model_id, artifactBytesMax: artifactBytesMax as number };
}

/** An address of a manifest, as `enroll` and `apply` take it. */
export function isManifestUri(value: unknown): boolean {
  const url = typeof value === "string" ? URL.parse(value) : null;
  return url !== null && !url.username && !url.password &&
    (url.protocol === "https:" || (url.protocol === "file:" && url.host === ""));
}

function findEnrollment(folder: StateFolder): Enrollment | null {
  let text: string;
  try {
    text = Deno.readTextFileSync(folder.file("enrollment.json"));
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return null;
    throw new CliError("failed", `cannot read ${folder.path}: ${(error as Error).message}`);
  }
  return readFields(folder.file("enrollment.json"), text, ENROLLMENT);
}

/** The hook runs with the rights of the updater, so nobody else may be able to change it. */
function checkHook(path: string): void {
  const { isFile, mode } = statOf(path);
  if (!isFile || (mode! & 0o111) === 0) {
    throw new CliError("usage", `--hook must be an executable file, got ${path}`);
  }
  if ((mode! & 0o022) !== 0) {
    throw new CliError("usage", `others may change the hook ${path}`, `chmod go-w ${path}`);
  }
}
