/** Payloads that are read from the log: JSON text of any shape, as another version may have written it. */

/** The fields of the payload; undefined when it is no JSON object. */
export function payloadFields(json: string): Record<string, unknown> | undefined {
  try {
    const payload = JSON.parse(json);
    return typeof payload === "object" && payload !== null && !Array.isArray(payload) ? payload : undefined;
  } catch {
    return undefined;
  }
}
