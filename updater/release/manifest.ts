/** The manifest of a release: its fields, the bytes that are signed, and its signature. See docs/edge.md#manifest. */

import { z } from "zod";
import { CliError } from "../../cli/failure.ts";
import {
  field,
  integerField,
  modelField,
  nameField,
  numberField,
  readFields,
  textField,
} from "./field_rules.ts";

/** From the first one on, each comes after the one before it. */
export const STAGES = ["shadow", "canary", "active"] as const;
export type Stage = typeof STAGES[number];

const URI_CHARACTERS_MAX = 4096;

export const stageField: z.ZodType<Stage> = field<Stage>(
  `one of ${STAGES.join(", ")}`,
  (value) => STAGES.includes(value as Stage),
);

const UNSIGNED = {
  schema_version: field<2>("2", (value) => value === 2),
  sequence: integerField(1),
  release_id: nameField,
  model_id: modelField,
  hardware_cohort: nameField,
  stage: stageField,
  artifact: z.strictObject({
    uri: field<string>("an https or file address without user, password and fragment", isArtifactUri),
    sha256: textField("64 lower-case hexadecimal digits", /^[0-9a-f]{64}$/),
    size_bytes: integerField(1),
  }),
  acceptance: z.strictObject({
    minimum_samples: integerField(1),
    minimum_success_rate: numberField("a number from 0 to 1", 0, 1),
    maximum_p95_ms: numberField("a number above 0", Number.MIN_VALUE),
    maximum_rss_bytes: integerField(1),
  }),
};

export const MANIFEST = z.strictObject({
  ...UNSIGNED,
  signature: textField("128 lower-case hexadecimal digits", /^[0-9a-f]{128}$/),
});

export type Manifest = z.infer<typeof MANIFEST>;

/** Any text where the signature is to stand, or none. */
const DRAFT = z.strictObject({ ...UNSIGNED, signature: z.string().optional() });

export function readManifest(text: string): Manifest {
  return readFields("the manifest", text, MANIFEST);
}

/** A manifest that is about to be signed, with an empty signature. */
export function readDraft(text: string): Manifest {
  return { ...readFields("the manifest", text, DRAFT), signature: "" };
}

/** The manifest as compact JSON in the order of its fields. With an empty signature these are the bytes that are signed. */
export function manifestText(manifest: Manifest, signature: string): string {
  const { artifact, acceptance } = manifest;
  return JSON.stringify({
    schema_version: manifest.schema_version,
    sequence: manifest.sequence,
    release_id: manifest.release_id,
    model_id: manifest.model_id,
    hardware_cohort: manifest.hardware_cohort,
    stage: manifest.stage,
    artifact: { uri: artifact.uri, sha256: artifact.sha256, size_bytes: artifact.size_bytes },
    acceptance: {
      minimum_samples: acceptance.minimum_samples,
      minimum_success_rate: acceptance.minimum_success_rate,
      maximum_p95_ms: acceptance.maximum_p95_ms,
      maximum_rss_bytes: acceptance.maximum_rss_bytes,
    },
    signature,
  });
}

/** What a release may never change: everything of its first manifest but sequence, stage and signature. */
export function identityOf(manifest: Manifest): string {
  return manifestText({ ...manifest, sequence: 1, stage: "shadow" }, "");
}

export async function signManifest(manifest: Manifest, key: CryptoKey): Promise<string> {
  const signature = await crypto.subtle.sign("Ed25519", key, signedBytes(manifest));
  return manifestText(manifest, new Uint8Array(signature).toHex());
}

/** Throws unless one of the keys made the signature. */
export async function verifyManifest(manifest: Manifest, keys: readonly CryptoKey[]): Promise<void> {
  const signature = Uint8Array.fromHex(manifest.signature);
  for (const key of keys) {
    if (await crypto.subtle.verify("Ed25519", key, signature, signedBytes(manifest))) return;
  }
  throw new CliError(
    "refused",
    `the manifest is refused: signature: no key of this device made it for these fields (${manifest.release_id})`,
  );
}

/** The file of the model in the folder of its release; its ending is that of the artifact, which some programs ask for. */
export function modelFileName({ artifact }: Manifest): string {
  return `model${/\.[A-Za-z0-9]{1,16}$/.exec(new URL(artifact.uri).pathname)?.[0] ?? ""}`;
}

function signedBytes(manifest: Manifest): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(manifestText(manifest, ""));
}

function isArtifactUri(value: unknown): boolean {
  if (typeof value !== "string" || value.length > URI_CHARACTERS_MAX) return false;
  const url = URL.parse(value);
  if (!url || url.username || url.password || url.hash) return false;
  return url.protocol === "https:" || (url.protocol === "file:" && url.host === "");
}
