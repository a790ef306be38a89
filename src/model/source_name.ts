/** How a `source_uri` names a source of the operator's file: `source:<name>`. See docs/cameras.md. */

/** What a source may be called. */
export const SOURCE_NAME = /^[a-z0-9-]{1,64}$/;

export const isSourceName = (name: unknown): name is string =>
  typeof name === "string" && SOURCE_NAME.test(name);

const PREFIX = "source:";

/** The `source_uri` of a named source, by which events, answers and logs name it. */
export function sourceUriOf(name: string): string {
  return `${PREFIX}${name}`;
}

/** The name in a `source_uri`, which may be no name at all; null for any other source. */
export function nameInSourceUri(sourceUri: string): string | null {
  const uri = sourceUri.trim();
  return uri.toLowerCase().startsWith(PREFIX) && !uri.startsWith(`${PREFIX}//`)
    ? uri.slice(PREFIX.length)
    : null;
}
