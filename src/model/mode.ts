/** The four processing modes. A mode is stored and returned; nothing depends on it. See docs/frames.md#modes.
 */

export const MODES = ["balanced", "detailed", "efficiency", "custom"] as const;

export type Mode = typeof MODES[number];

export const DEFAULT_MODE: Mode = "balanced";

/** The canonical spelling of `text` in any case, or undefined when it names no mode. */
export function parseMode(text: string): Mode | undefined {
  const lower = text.toLowerCase();
  return MODES.find((mode) => mode === lower);
}
