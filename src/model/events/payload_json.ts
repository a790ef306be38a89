/** Payloads as they are read back: JSON text that may be of any shape, because a log may hold anything. */

/** The payload's fields; undefined when it is no JSON or no object. */
export function payloadFields(json: string): Record<string, unknown> | undefined {
  try {
    const payload = JSON.parse(json);
    return typeof payload === "object" && payload !== null && !Array.isArray(payload) ? payload : undefined;
  } catch {
    return undefined;
  }
}
