/** Reading single values out of payloads, which may be of any kind and any version. */

import type { JsonObject } from "../../../client/mod.ts";

/** Follows names separated by dots: `evidence.image_sha256`; undefined where one is not there. */
export function valueAt(payload: JsonObject, path: string): unknown {
  return path.split(".").reduce<unknown>(
    (value, name) => isObject(value) ? value[name] : undefined,
    payload,
  );
}

/** A text that is not empty. */
export function textAt(payload: JsonObject, path: string): string | null {
  const value = valueAt(payload, path);
  return typeof value === "string" && value !== "" ? value : null;
}

export function numberAt(payload: JsonObject, path: string): number | null {
  const value = valueAt(payload, path);
  return typeof value === "number" && Number.isFinite(value) ? value : null;
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
