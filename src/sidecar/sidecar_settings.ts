/** How a reference sidecar reads its settings: variable by variable, with every fault named. */

import type { Parser } from "../contract/setting_parsers.ts";

/** Variables of the environment; one that is not set is undefined. */
export type SidecarEnvironment = Readonly<Record<string, string | undefined>>;

/**
 * The value of a variable; undefined when it is not set or empty. A faulty one is undefined and recorded as a
 * fault.
 */
export type ReadSetting<Name extends string> = <T>(name: Name, parser: Parser<T>) => T | undefined;

/**
 * Reads settings with `read`, which reads variables through its first argument and may add faults to its
 * second one. Throws an Error with one line for each fault.
 */
export function readSettings<Name extends string, Settings>(
  env: SidecarEnvironment,
  read: (setting: ReadSetting<Name>, faults: string[]) => Settings,
): Settings {
  const faults: string[] = [];
  const settings = read((name, parser) => {
    const text = env[name];
    if (text === undefined || text === "") return undefined;
    const value = parser.read(text);
    if (value === undefined) faults.push(`${name} must be ${parser.rule}`);
    return value;
  }, faults);
  if (faults.length > 0) throw new Error(faults.join("\n"));
  return settings;
}

/** The name or path of a program, a key, the name of a model. */
export const singleLine: Parser<string> = {
  rule: "a text without line breaks",
  read: (text) => /^[^\r\n]+$/.test(text) ? text : undefined,
};
