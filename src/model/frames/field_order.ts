/** The order of the two fields of a frame, as ffprobe names it: which one is stored first, and which one is
 * shown first.
 */
export const FIELD_ORDERS = ["tt", "bb", "tb", "bt"] as const;

export type FieldOrder = typeof FIELD_ORDERS[number];
