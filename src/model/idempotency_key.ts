/** Idempotency keys: their form, and what a key stands for. See docs/api.md#idempotency-keys. */

import { createHash } from "node:crypto";
import { refuse } from "../contract/refusal.ts";
import { LIMITS } from "../contract/limits.ts";

/** The request header, and how a refusal names it. */
export const IDEMPOTENCY_KEY = "idempotency-key";

/** Refuses with 422 a key that is not 1 to 128 visible ASCII characters. */
export function checkIdempotencyKey(key: string): void {
  const { minimum, maximum } = LIMITS.idempotency.keyCharacters;
  if (key.length >= minimum && key.length <= maximum && /^[\x21-\x7e]+$/.test(key)) return;
  throw refuse.invalid(
    IDEMPOTENCY_KEY,
    `must have ${minimum} to ${maximum} visible ASCII characters and no space: got ${key.length}`,
  );
}

/** What one key of one principal stands for: a method and a path with its ids. 64 hex digits, from which none of it can be read. */
export function keyScope(principalKey: string, method: string, path: string, key: string): string {
  return textDigest([principalKey, method, path, key].join("\n"));
}

/** 64 hex digits. */
export function textDigest(text: string): string {
  return createHash("sha256").update(text, "utf8").digest("hex");
}
