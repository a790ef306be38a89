/** Reads the files that settings name and the sandboxed service may not read: label maps, model backends and
 * named sources.
 */

import { errorText } from "../base/log.ts";
import type { Config } from "../contract/config.ts";
import {
  BackendFaults,
  type BackendFile,
  backendsOfVariables,
  NO_BACKENDS,
  parseBackendFile,
} from "../model/infer/backend_file.ts";
import { type LabelMaps, parseLabelMaps } from "../model/frames/label_map.ts";
import { LIMITS } from "../contract/limits.ts";
import { attachContext } from "../model/live/attach.ts";
import type { RestrictedZone } from "../model/policies/zone.ts";
import { type NamedSource, parseSourceFile, SourceFaults } from "../model/sources/source_file.ts";

/**
 * Reads the label maps, which the sandboxed service may not read. Adds what is wrong with them to `faults`.
 */
export function readLabelMaps(
  { labelMapsPath }: Partial<Pick<Config, "labelMapsPath">>,
  faults: string[],
): LabelMaps | null {
  if (!labelMapsPath) return null;
  try {
    return parseLabelMaps(Deno.readTextFileSync(labelMapsPath));
  } catch (error) {
    const path = JSON.stringify(labelMapsPath);
    faults.push(
      `SERVICE_TENANT_LABEL_MAPS_PATH must name a file of label maps, got ${path}: ${errorText(error)}; ` +
        "correct it, or remove the variable to leave labels as they are",
    );
    return null;
  }
}

/**
 * The backends of the two URL variables, or else of the backend file, whose texts may name variables of
 * `env`. A missing file means no backends. Adds what is wrong to `faults`. See
 * docs/configuration.md#backend-file.
 */
export function readBackends(
  config: Partial<
    Pick<
      Config,
      "vllmBaseUrl" | "vllmApiKey" | "sglangBaseUrl" | "sglangApiKey" | "backendFile" | "webrtc"
    >
  >,
  env: Readonly<Record<string, string | undefined>>,
  faults: string[],
): BackendFile {
  try {
    const backends = backendsOfVariables(config) ?? backendsOfFile();
    const crop = config.webrtc?.crop;
    const region = backends.restrictedZone?.region;
    const sides = ["x", "y", "width", "height"] as const;
    if (crop && region && sides.some((side) => crop[side] !== region[side])) {
      faults.push(
        "SERVICE_WEBRTC_CROP must be equal to restricted_zone.region of the backend file, as both are set; remove one of them",
      );
    }
    return backends;
  } catch (error) {
    if (!(error instanceof BackendFaults)) throw error;
    faults.push(...error.faults);
    return NO_BACKENDS;
  }

  function backendsOfFile(): BackendFile {
    const isUrlSet = env.SERVICE_VLLM_BASE_URL !== undefined || env.SERVICE_SGLANG_BASE_URL !== undefined;
    if (isUrlSet || config.backendFile === undefined) return NO_BACKENDS;
    return readBackendFile(config.backendFile, env);
  }
}

/** Reads the backend file. Errors: `BackendFaults`, each prefixed with the name of the file. */
function readBackendFile(path: string, env: Readonly<Record<string, string | undefined>>): BackendFile {
  const place = `SERVICE_CONFIG ${JSON.stringify(path)}`;
  let text;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(Deno.readFileSync(path));
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return NO_BACKENDS;
    throw new BackendFaults([
      `${place} must be a file of UTF-8 text that can be read: ${
        errorText(error)
      }; correct it, or remove SERVICE_CONFIG to do without`,
    ]);
  }
  try {
    return parseBackendFile(text, env);
  } catch (error) {
    if (!(error instanceof BackendFaults)) throw error;
    throw new BackendFaults(error.faults.map((fault) => `${place}: ${fault}; correct the file`));
  }
}

type SourceSettings =
  & Pick<Config, "sourcesFile" | "webrtc" | "triggerLocalOutputSocket">
  & Pick<Config, "allowInsecureHttp" | "allowUnencryptedRtsp" | "allowRemoteHls">
  & Pick<Config, "webhookSecret" | "allowPrivateWebhooks">;

/**
 * The named sources, whose addresses may name variables of `env`; `zone` is that of the backend file. Null
 * where there is no file. Errors: `SourceFaults`, each prefixed with the name of the file. See
 * docs/cameras.md.
 */
export function readSources(
  config: SourceSettings,
  env: Readonly<Record<string, string | undefined>>,
  zone: RestrictedZone | null,
): readonly NamedSource[] | null {
  const place = `SERVICE_SOURCES_CONFIG ${JSON.stringify(config.sourcesFile)}`;
  let text;
  try {
    const { size, isFile } = Deno.statSync(config.sourcesFile);
    const most = LIMITS.sources.fileBytesMax;
    // A pipe or a device would be read for ever.
    if (!isFile) throw new Error("it is not a file");
    if (size > most) throw new Error(`it has more than ${most} bytes`);
    text = new TextDecoder("utf-8", { fatal: true }).decode(Deno.readFileSync(config.sourcesFile));
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return null;
    throw new SourceFaults([
      `${place} must be a file of UTF-8 text that can be read: ${errorText(error)}; correct it`,
    ]);
  }
  try {
    const webhooks = { allowPrivate: config.allowPrivateWebhooks, areOn: config.webhookSecret !== undefined };
    return parseSourceFile(text, { env, toggles: config, attach: attachContext(config, zone), webhooks });
  } catch (error) {
    if (!(error instanceof SourceFaults)) throw error;
    throw new SourceFaults(error.faults.map((fault) => `${place}: ${fault}; correct the file`));
  }
}

/**
 * Like {@link readSources}, at the start: a missing file means no sources, and what is wrong is added to
 * `faults`.
 */
export function readSourcesAtStart(
  config: Partial<Config>,
  env: Readonly<Record<string, string | undefined>>,
  zone: RestrictedZone | null,
  faults: string[],
): readonly NamedSource[] {
  // A setting that is missing here is a fault that is reported already.
  if (config.sourcesFile === undefined || config.webrtc === undefined) return [];
  try {
    return readSources(config as SourceSettings, env, zone) ?? [];
  } catch (error) {
    if (!(error instanceof SourceFaults)) throw error;
    faults.push(...error.faults);
    return [];
  }
}
