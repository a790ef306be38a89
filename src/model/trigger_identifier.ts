/** The rule for the identifiers of trigger programs: program ids, event types, labels and zones in a source.
 */

import { quoted } from "./field_rules.ts";
import { LIMITS } from "../contract/limits.ts";

const { minimum, maximum } = LIMITS.trigger.identifierBytes;

/** The pattern of identifiers. See docs/triggers-policies.md#trigger-source. */
export const IDENTIFIER = new RegExp(`^[A-Za-z0-9_.:-]{${minimum},${maximum}}$`);

/** The rule for identifiers in words. */
export const IDENTIFIER_RULE = `${minimum} to ${maximum} letters, digits or any of "-_.:"`;

/** The fault of a text that breaks the rule; it completes the name of the field. */
export function identifierFault(text: string): string {
  return `must be ${IDENTIFIER_RULE}: got ${quoted(text)}`;
}
