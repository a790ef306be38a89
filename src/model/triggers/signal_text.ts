/** How signals are written in a source: `motion_score`, `object_count:person@bay`. See
 * docs/triggers-policies.md#trigger-source.
 */

import { quoted } from "../field_rules.ts";
import { didYouMean } from "./near_miss.ts";
import { IDENTIFIER, IDENTIFIER_RULE } from "../trigger_identifier.ts";
import { PAIR_KINDS, SCALAR_KINDS, type Signal } from "./program.ts";

type PairKind = typeof PAIR_KINDS[number];

/** Names that a colon and parameters follow, each with its form. */
const PARAMETERS: Readonly<Record<string, string>> = {
  object_count: "object_count:LABEL or object_count:LABEL@ZONE",
  minimum_distance_mm: "minimum_distance_mm:LEFT,RIGHT",
  time_to_collision_ms: "time_to_collision_ms:LEFT,RIGHT",
  dwell_ms: "dwell_ms:LABEL@ZONE",
  audio_event: "audio_event:LABEL",
};

const NAMES: readonly string[] = [...SCALAR_KINDS, ...Object.keys(PARAMETERS)];

/** The signal, or a text that says what is wrong. */
export function parseSignal(text: string): Signal | string {
  const colon = text.indexOf(":");
  const name = colon < 0 ? text : text.slice(0, colon);
  const scalar = SCALAR_KINDS.find((kind) => kind === name);
  if (scalar) return colon < 0 ? { kind: scalar } : `${scalar} stands alone, without ":"`;
  const form = Object.hasOwn(PARAMETERS, name) ? PARAMETERS[name] : undefined;
  if (form === undefined) return `unknown signal ${quoted(name)}${signalHint(name)}`;
  const parsed = colon < 0 ? undefined : withParameters(name, text.slice(colon + 1));
  return parsed ?? `${name} is written ${form}, with names of ${IDENTIFIER_RULE}`;
}

/** The text of a signal. Its names may be ones that a source cannot contain. */
export function signalText(signal: Signal): string {
  switch (signal.kind) {
    case "object_count":
      return `object_count:${signal.label}${signal.zone == null ? "" : `@${signal.zone}`}`;
    case "minimum_distance_mm":
    case "time_to_collision_ms":
      return `${signal.kind}:${signal.left},${signal.right}`;
    case "dwell_ms":
      return `dwell_ms:${signal.label}@${signal.zone}`;
    case "audio_event_confidence":
      return `audio_event:${signal.label}`;
    default:
      return signal.kind;
  }
}

/**
 * A hint for a name: a source writes `audio_event` for the kind `audio_event_confidence`, which is easily
 * confused.
 */
function signalHint(name: string): string {
  return name === "audio_event_confidence" ? ', did you mean "audio_event"?' : didYouMean(name, NAMES);
}

function withParameters(name: string, text: string): Signal | undefined {
  switch (name) {
    case "object_count": {
      const [label, zone = null, ...more] = text.split("@");
      const isNamed = IDENTIFIER.test(label!) && (zone === null || IDENTIFIER.test(zone));
      return isNamed && more.length === 0 ? { kind: name, label: label!, zone } : undefined;
    }
    case "dwell_ms": {
      const [label, zone] = pair(text, "@") ?? [];
      return label && zone ? { kind: name, label, zone } : undefined;
    }
    case "audio_event":
      return IDENTIFIER.test(text) ? { kind: "audio_event_confidence", label: text } : undefined;
    default: {
      const [left, right] = pair(text, ",") ?? [];
      return left && right ? { kind: name as PairKind, left, right } : undefined;
    }
  }
}

function pair(text: string, separator: string): string[] | undefined {
  const parts = text.split(separator);
  return parts.length === 2 && parts.every((part) => IDENTIFIER.test(part)) ? parts : undefined;
}
