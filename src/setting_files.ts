/** Reads the files that settings name and the sandboxed service may not read: label maps and model backends. */

import type { Config } from "./base/config.ts";
import { reason } from "./environment.ts";
import {
  BackendFaults,
  type BackendFile,
  backendsOfVariables,
  NO_BACKENDS,
  parseBackendFile,
} from "./model/infer/backend_file.ts";
import { type LabelMaps, parseLabelMaps } from "./model/frames/label_map.ts";

/** Reads the label maps, which the sandboxed service may not read. Adds what is wrong with them to `faults`. */
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
      `SERVICE_TENANT_LABEL_MAPS_PATH must name a file of label maps, got ${path}: ${reason(error)}; ` +
        "correct it, or remove the variable to leave labels as they are",
    );
    return null;
  }
}

/**
 * The backends of the two URL variables, or else of the backend file, whose texts may name variables of `env`. A missing
 * file means no backends. Adds what is wrong to `faults`. See docs/configuration.md#backend-file.
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

/** Errors: `BackendFaults`, each prefixed with the name of the file. */
function readBackendFile(path: string, env: Readonly<Record<string, string | undefined>>): BackendFile {
  const place = `SERVICE_CONFIG ${JSON.stringify(path)}`;
  let text;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(Deno.readFileSync(path));
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return NO_BACKENDS;
    throw new BackendFaults([
      `${place} must be a file of UTF-8 text that can be read: ${
        reason(error)
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
