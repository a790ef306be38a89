/** Decodes the fields of a request (RFC 9204 4.5): from the static table or literal, as there is no dynamic
 * table.
 */

import { ConnectionFault, RequestFault } from "../wire/faults.ts";
import { PrefixReader } from "./prefix_reader.ts";
import { STATIC_TABLE } from "./static_table.ts";

export type Field = readonly [name: string, value: string];

/** What a field counts besides its name and value (RFC 9114 4.2.2). */
const FIELD_BYTES = 32;

/**
 * ```
 *   required insert count | base    both unused without a dynamic table
 *   1 T index 6                     a whole field; T: of the static table
 *   01 N T index 4, text 7          the name from a table
 *   001 N H name 3, text 7          both literal
 *   0001, 0000                      from the dynamic table
 * ```
 * Throws a {@link RequestFault} where the fields count more than `sizeMax` bytes.
 */
export function decodeFields(block: Uint8Array, sizeMax: number): Field[] {
  const reader = new PrefixReader(block);
  if (reader.integer(8) !== 0) throw dynamic();
  if (reader.first >= 0x80) throw new ConnectionFault("QPACK_DECOMPRESSION_FAILED", "the base is negative");
  reader.integer(7);
  const fields: Field[] = [];
  let size = 0;
  while (!reader.isAtEnd) {
    const field = nextField(reader);
    size += field[0].length + field[1].length + FIELD_BYTES;
    if (size > sizeMax) throw new RequestFault(431, "The header fields are too long");
    fields.push(field);
  }
  return fields;
}

function nextField(reader: PrefixReader): Field {
  const { first } = reader;
  if (first >= 0x80) {
    if ((first & 0x40) === 0) throw dynamic();
    return staticField(reader.integer(6));
  }
  if (first >= 0x40) {
    if ((first & 0x10) === 0) throw dynamic();
    const [name] = staticField(reader.integer(4));
    return [name, reader.text(7)];
  }
  if (first >= 0x20) {
    const name = reader.text(3);
    return [name, reader.text(7)];
  }
  throw dynamic();
}

function staticField(index: number): Field {
  const field = STATIC_TABLE[index];
  if (field === undefined) {
    throw new ConnectionFault("QPACK_DECOMPRESSION_FAILED", `the static table has no field ${index}`);
  }
  return field;
}

function dynamic(): ConnectionFault {
  return new ConnectionFault(
    "QPACK_DECOMPRESSION_FAILED",
    "a field is of the dynamic table, which has no room",
  );
}
