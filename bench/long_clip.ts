/** Clips of many small frames, which are made once: decoding them takes less than handling what comes of
 * them.
 */

import { join } from "node:path";
import { CLIP_CACHE } from "./support.ts";

const FPS = 120;

/** Where the clip of so many frames is. */
export function longClipPath(frames: number): string {
  return join(CLIP_CACHE, `${frames}-frames.mp4`);
}

/** Makes the clip of so many frames unless it is there. Returns its path. */
export async function longClip(frames: number): Promise<string> {
  const path = longClipPath(frames);
  try {
    Deno.statSync(path);
    return path;
  } catch {
    Deno.mkdirSync(CLIP_CACHE, { recursive: true });
  }
  const picture = `testsrc=size=32x32:rate=${FPS}:duration=${Math.ceil(frames / FPS) + 1}`;
  const { success, stderr } = await new Deno.Command("ffmpeg", {
    args: [
      ...["-v", "error", "-y", "-f", "lavfi", "-i", picture, "-frames:v", String(frames)],
      ...["-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", path],
    ],
  }).output();
  if (!success) throw new Error(new TextDecoder().decode(stderr));
  return path;
}
