/** The fields of a new webhook for conditions on the content of events, and for its cooldown. */

import type { WebhookRequest } from "../../../client/mod.ts";
import { ChoiceField, TextField } from "../../ui/field.tsx";

/** As they are typed; empty for no condition. */
export interface Conditions {
  readonly labels: string;
  readonly zones: string;
  readonly sources: string;
  readonly confidence: string;
  readonly armed: Armed;
  readonly cooldown: string;
}

type Armed = NonNullable<NonNullable<WebhookRequest["filter"]>["armed"]>;

export const NO_CONDITIONS: Conditions = {
  labels: "",
  zones: "",
  sources: "",
  confidence: "",
  armed: "armed",
  cooldown: "",
};

const PATHS = [
  "filter.labels",
  "filter.zones",
  "filter.sources",
  "filter.min_confidence",
  "filter.armed",
  "cooldown.interval_ms",
];

const ARMED: readonly { readonly value: Armed; readonly text: string }[] = [
  { value: "armed", text: "What an armed camera finds, and all else" },
  { value: "disarmed", text: "Only what a disarmed camera finds" },
  { value: "any", text: "Everything, armed or not" },
];

export function ConditionFields({ of, onChange, faultOf }: {
  readonly of: Conditions;
  readonly onChange: (conditions: Conditions) => void;
  readonly faultOf: (field: string) => string | undefined;
}) {
  const field = (
    name: Exclude<keyof Conditions, "armed">,
    label: string,
    path: string,
    hint: string,
    type: "text" | "number" = "text",
  ) => (
    <TextField
      label={label}
      type={type}
      value={of[name]}
      onInput={(value) => onChange({ ...of, [name]: value })}
      hint={hint}
      fault={faultOf(path)}
      isMono
    />
  );
  return (
    <details class="conditions" open={PATHS.some((path) => faultOf(path) !== undefined)}>
      <summary>Conditions and cooldown</summary>
      {field(
        "labels",
        "Labels",
        "filter.labels",
        "Marker types, objects, sounds; one of them, commas between",
      )}
      {field("zones", "Zones", "filter.zones", "Policy ids of zones")}
      {field("sources", "Sources", "filter.sources", "Names of named sources")}
      {field("confidence", "Least confidence", "filter.min_confidence", "From 0 to 1", "number")}
      <ChoiceField
        label="Armed cameras"
        value={of.armed}
        onChange={(armed) => onChange({ ...of, armed: armed as Armed })}
        choices={ARMED}
        hint="Of zones and triggers of cameras with armed times"
        fault={faultOf("filter.armed")}
      />
      {field(
        "cooldown",
        "Cooldown in seconds",
        "cooldown.interval_ms",
        "After a delivery, more of the same kind and source are counted and not sent",
        "number",
      )}
    </details>
  );
}

/** The fields of the request that they make. A number that is none is refused by the server. */
export function conditionsOf(given: Conditions): Pick<WebhookRequest, "filter" | "cooldown"> {
  const list = (text: string) => text.split(",").map((entry) => entry.trim()).filter(Boolean);
  return {
    filter: {
      labels: list(given.labels),
      zones: list(given.zones),
      sources: list(given.sources),
      ...(given.confidence.trim() !== "" && { min_confidence: Number(given.confidence) }),
      ...(given.armed !== "armed" && { armed: given.armed }),
    },
    ...(given.cooldown.trim() !== "" && {
      cooldown: { interval_ms: Math.round(Number(given.cooldown) * 1000) },
    }),
  };
}
