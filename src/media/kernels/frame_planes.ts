/** The sizes of reduced frames, without the filter that reads them: who only names sizes need not load it. */

export const PLANE_WIDTH = 320;
export const PLANE_HEIGHT = 180;
/** Bytes of the luma plane. */
export const PLANE_BYTES = PLANE_WIDTH * PLANE_HEIGHT;
export const CHROMA_WIDTH = PLANE_WIDTH / 2;
export const CHROMA_HEIGHT = PLANE_HEIGHT / 2;
/** Bytes of a frame, which is yuv420p: the planes Y, U and V one after the other, without padding. */
export const FRAME_BYTES = PLANE_BYTES + 2 * CHROMA_WIDTH * CHROMA_HEIGHT;
