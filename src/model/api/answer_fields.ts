/** How answers are named, and the fields that several of them share. */

import * as z from "zod";
import type { ZodRawShape, ZodType } from "zod";
import { count, open } from "../events/payload_shapes.ts";
import { named } from "../schemas/named_shapes.ts";

/**
 * The shape of an answer by its name in the API description, from its fields (it is open: answers may get
 * more) or as it is. It is made when it is first asked for: the service never asks, and to make all at its
 * start would take 18 ms and 2 MB.
 */
export function answer<Shape extends ZodRawShape>(
  name: string,
  fieldsOf: () => Shape,
): () => OpenShape<Shape>;
export function answer<Shape extends ZodType>(name: string, shapeOf: () => Shape): () => Shape;
export function answer(name: string, make: () => ZodRawShape | ZodType): () => ZodType {
  let shape: ZodType | undefined;
  return () => {
    if (shape) return shape;
    const made = make();
    return shape = named(name, made instanceof z.ZodType ? made : open(made as ZodRawShape));
  };
}

type OpenShape<Shape extends ZodRawShape> = ReturnType<typeof open<Shape>>;

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
