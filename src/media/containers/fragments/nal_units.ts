/** NAL units of H.264 and H.265 as MP4 stores them: each with its size before it, and parameter sets apart
 * from the pictures.
 */

import { joinedBytes } from "../../../base/bytes.ts";
import type { ClipCodec } from "../parameter_sets.ts";

/** Parameter sets, and what only separates pictures: types of NAL units. */
const SETS = { h264: [7, 8, 13], h265: [32, 33, 34] } as const;
const SEPARATORS = { h264: [9, 12], h265: [35, 38] } as const;
const SIZE_BYTES = 4;

/** The parameter sets of Annex B data, as Annex B; empty for none. */
export function parameterSetsOf(codec: ClipCodec, data: Uint8Array): Uint8Array<ArrayBuffer> {
  const sets = nalUnits(data).filter((unit) => isOneOf(SETS[codec], codec, unit));
  return joinedBytes(...sets.flatMap((unit) => [START_CODE, unit]));
}

/** The pictures of Annex B data, and what belongs to them. */
export function sizedPictures(codec: ClipCodec, data: Uint8Array): Uint8Array<ArrayBuffer> {
  const units = nalUnits(data).filter((unit) =>
    !isOneOf(SETS[codec], codec, unit) && !isOneOf(SEPARATORS[codec], codec, unit)
  );
  const sized = new Uint8Array(units.reduce((sum, { length }) => sum + SIZE_BYTES + length, 0));
  const view = new DataView(sized.buffer);
  let at = 0;
  for (const unit of units) {
    view.setUint32(at, unit.length);
    sized.set(unit, at + SIZE_BYTES);
    at += SIZE_BYTES + unit.length;
  }
  return sized;
}

const START_CODE = Uint8Array.of(0, 0, 0, 1);

function isOneOf(types: readonly number[], codec: ClipCodec, unit: Uint8Array): boolean {
  return types.includes(codec === "h264" ? unit[0]! & 31 : unit[0]! >> 1 & 63);
}

/** Parts of `data`, none of them empty. */
function nalUnits(data: Uint8Array): Uint8Array[] {
  const units: Uint8Array[] = [];
  let begin = -1;
  // A start code ends with the only 1 that two zeros may stand before.
  for (let one = data.indexOf(1, 2); one !== -1; one = data.indexOf(1, one + 1)) {
    if (data[one - 1] !== 0 || data[one - 2] !== 0) continue;
    if (begin !== -1) addWithoutZeros(units, data.subarray(begin, one - 2));
    begin = one + 1;
  }
  if (begin !== -1) addWithoutZeros(units, data.subarray(begin));
  return units;
}

/** Zeros behind a unit belong to the next start code, or fill up. */
function addWithoutZeros(units: Uint8Array[], unit: Uint8Array): void {
  let end = unit.length;
  while (end > 0 && unit[end - 1] === 0) end--;
  if (end > 0) units.push(unit.subarray(0, end));
}
