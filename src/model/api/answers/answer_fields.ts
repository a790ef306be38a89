/** The fields that several answers share. Answers may get more fields: their schemas are open. */

import * as z from "zod";
import { count, open } from "../../events/payload_shapes.ts";
import { named } from "../../schemas/named_shapes.ts";

export const requestIdField = z.string().regex(/^req-[0-9a-f]{16}$/);
export const runIdField = z.string().regex(/^run-([0-9a-fA-F]{16}|[0-9a-fA-F]{32})$/);
export const sessionIdField = z.string().regex(/^sess-[0-9a-f]{16}$/);
export const webhookIdField = z.string().regex(/^wh_[0-9a-f]{24}$/);
/** A time in UTC with three fraction digits. */
export const timestamp = z.string().regex(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/).meta({
  format: "date-time",
});

/** The status of a run; the last four are terminal. */
export const runStatus = named(
  "RunStatus",
  z.enum(["pending", "processing", "completed", "failed", "cancelled", "expired"]),
);

export const tokens = open({
  prompt_tokens: count,
  completion_tokens: count,
  thinking_tokens: count,
  total_tokens: count,
});

/** The cursor of a list that comes in pages. */
export const nextCursorField = z.string().min(1).nullable().describe(
  "The `cursor` that reads on; null at the end",
);

/** The cursor of a list that comes whole where neither `limit` nor `cursor` is given. */
export const pageCursorField = nextCursorField.optional().describe(
  "The `cursor` that reads on, null at the end; absent from a whole list",
);
