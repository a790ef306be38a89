/** The named schemas of the API description. Types that are generated from it have these names. */

import type { ZodType } from "zod";
import { ERROR_ENVELOPE } from "../../model/api/system.ts";
import { EVENTS } from "../../model/events/event_table.ts";
import { open } from "../../model/events/payload_shapes.ts";
import { restrictedZone } from "../../model/events/policy_payloads.ts";
import { ATTACH } from "../../model/live/attach.ts";
import { frameMetadata } from "../../model/published/frame_metadata.ts";
import { shapesByName } from "../../model/schemas/named_shapes.ts";
import { cloudEventEnvelope } from "../../model/published/published.ts";
import { triggerProgram } from "../../model/triggers/program.ts";
import { triggerSample } from "../../model/triggers/samples.ts";
import type { Route } from "../route/route.ts";

/**
 * The shape of every name: what `named` has named, once the answers of `routes` are made, and what not only
 * routes have. Several kinds of events may have one shape, so `EventPayloads` names them by kind.
 */
export function namedShapes(routes: readonly Route[]): Record<string, ZodType> {
  for (const { answers } of routes) {
    for (const { content = {} } of Object.values(answers)) {
      for (const shape of Object.values(content)) if (typeof shape === "function") shape();
    }
  }
  const payloads = Object.fromEntries(Object.entries(EVENTS).map(([kind, { payload }]) => [kind, payload]));
  ERROR_ENVELOPE();
  return {
    ...shapesByName(),
    TriggerSample: triggerSample,
    AttachConfig: ATTACH,
    FrameMetadata: frameMetadata,
    TriggerProgram: triggerProgram,
    RestrictedZone: restrictedZone,
    CloudEvent: cloudEventEnvelope,
    EventPayloads: open(payloads).describe("The payload of each kind of event, by kind"),
  };
}

/** The reference to a named schema. */
export function refTo(name: string): string {
  return `#/components/schemas/${name}`;
}
