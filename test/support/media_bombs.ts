/** Files of some hundred bytes that say that they are very large. */

/** A GIF whose two frames fill one pixel each. */
export function tinyGif(width: number, height: number): Uint8Array<ArrayBuffer> {
  const edges = [width, width >> 8, height, height >> 8].map((byte) => byte & 255);
  const control = [0x21, 0xf9, 4, 0, 10, 0, 0, 0];
  const frame = [...control, 0x2c, 0, 0, 0, 0, 1, 0, 1, 0, 0, 2, 2, 0x44, 1, 0];
  const header = [...new TextEncoder().encode("GIF89a"), ...edges, 0x80, 0, 0, 0, 0, 0, 255, 255, 255];
  return new Uint8Array([...header, ...frame, ...frame, 0x3b]);
}

/** The MP4 of one frame, with tables that say that there are `frames` of the same size behind each other. */
export function manyFramesMp4(mp4: Uint8Array, frames: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(mp4);
  const view = new DataView(bytes.buffer);
  const text = new TextDecoder("latin1").decode(bytes);
  const set = (box: string, offset: number, value: number) =>
    view.setUint32(text.indexOf(box) + offset, value);
  set("stts", 12, frames);
  set("stsc", 16, frames);
  set("stsz", 8, 100);
  set("stsz", 12, frames);
  return bytes;
}
