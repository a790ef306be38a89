/** Files of some hundred bytes that say that they are very large. */

/** A GIF whose two frames fill one pixel each. */
export function tinyGif(width: number, height: number): Uint8Array<ArrayBuffer> {
  const edges = [width, width >> 8, height, height >> 8].map((byte) => byte & 255);
  const control = [0x21, 0xf9, 4, 0, 10, 0, 0, 0];
  const frame = [...control, 0x2c, 0, 0, 0, 0, 1, 0, 1, 0, 0, 2, 2, 0x44, 1, 0];
  const header = [...new TextEncoder().encode("GIF89a"), ...edges, 0x80, 0, 0, 0, 0, 0, 255, 255, 255];
  return new Uint8Array([...header, ...frame, ...frame, 0x3b]);
}
