/** How the documentation writes the value of a limit: with separators, with its unit, and in MiB where that
 * is even.
 */

import { code } from "./markdown.ts";

/** A bound in words; its unit is part of its name. */
export function valueText(name: string, value: unknown): string {
  if (Array.isArray(value)) return value.map((each) => valueText(name, each)).join(" or ");
  if (typeof value === "object" && value !== null) {
    const { minimum, maximum } = value as { minimum: number; maximum: number };
    return `${valueText("", minimum)} to ${valueText(name, maximum)}`;
  }
  if (typeof value !== "number") return code(String(value));
  const text = value.toLocaleString("en");
  if (/bytes/i.test(name)) return `${text} bytes${binaryText(value)}`;
  if (/Ms([A-Z]|$)|(^|_)MS(_|$)/.test(name)) return `${text} ms`;
  if (/seconds/i.test(name)) return `${text} s`;
  return text;
}

function binaryText(bytes: number): string {
  if (bytes >= 2 ** 20 && bytes % 2 ** 20 === 0) return ` (${bytes / 2 ** 20} MiB)`;
  if (bytes >= 2 ** 10 && bytes % 2 ** 10 === 0) return ` (${bytes / 2 ** 10} KiB)`;
  return "";
}
