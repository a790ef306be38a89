/** Integers of variable length (RFC 9000 16): the first two bits say in how many bytes, the others are the
 * value.
 */

/** How many bytes an integer has that begins with this byte: 1, 2, 4 or 8. */
export function varintLength(firstByte: number): number {
  return 1 << (firstByte >> 6);
}

/**
 * The integer at `at`, all bytes of which are there. Above 2^53 it is rounded: no length and no identifier
 * here is nearly so large.
 */
export function readVarint(bytes: Uint8Array, at = 0): number {
  const length = varintLength(bytes[at]!);
  let value = bytes[at]! & 0x3f;
  for (let index = at + 1; index < at + length; index++) value = value * 256 + bytes[index]!;
  return value;
}

/** The shortest form of `value`, which is below 2^53. */
export function varint(value: number): number[] {
  if (value < 2 ** 6) return [value];
  if (value < 2 ** 14) return [0x40 | (value >> 8), value & 0xff];
  if (value < 2 ** 30) return [0x80 | (value >> 24), (value >> 16) & 0xff, (value >> 8) & 0xff, value & 0xff];
  const bytes = new Uint8Array(8);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(value) | (0b11n << 62n));
  return [...bytes];
}
