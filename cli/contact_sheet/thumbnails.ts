/** Pictures of single frames of a film, cut out by ffmpeg in one pass, as data URIs. */

/** Pixels; the height follows. */
const WIDTH = 232;
/** Of JPEG, 2 is the best and 31 the worst. */
const QUALITY = 5;

/**
 * Frames of two fields become one picture as the service sees them; others stay. Comes first, as it looks at
 * the frames before and after.
 */
const DEINTERLACING = "bwdif=mode=send_frame:deint=interlaced";

/** The pictures by frame number; frames that the film does not have are left out. */
export async function thumbnails(
  ffmpeg: string,
  film: string,
  frames: Iterable<number>,
): Promise<ReadonlyMap<number, string>> {
  const wanted = [...new Set(frames)].toSorted((one, other) => one - other);
  const select = isOneOf(wanted);
  const { success, stdout, stderr } = await new Deno.Command(ffmpeg, {
    args: [
      ...["-v", "error", "-nostdin", "-i", film],
      ...["-vf", `${DEINTERLACING},select='${select}',scale=${WIDTH}:-2:flags=area`],
      ...["-fps_mode", "passthrough", "-c:v", "mjpeg", "-q:v", String(QUALITY), "-f", "image2pipe", "-"],
    ],
  }).output();
  if (!success) throw new Error(`ffmpeg could not cut out pictures: ${new TextDecoder().decode(stderr)}`);
  const pictures = jpegs(stdout);
  return new Map(
    pictures.map((jpeg, index) => [wanted[index]!, `data:image/jpeg;base64,${jpeg.toBase64()}`] as const),
  );
}

/**
 * Whether the number of a frame is one of these, which rise, as an expression: a tree, as ffmpeg takes no
 * long row of terms.
 */
function isOneOf(frames: readonly number[]): string {
  if (frames.length <= 1) return frames.length === 0 ? "0" : `eq(n,${frames[0]})`;
  const middle = frames.length >> 1;
  const [lower, upper] = [frames.slice(0, middle), frames.slice(middle)];
  return `if(lt(n,${upper[0]}),${isOneOf(lower)},${isOneOf(upper)})`;
}

/** The JPEGs of a stream of JPEGs: in their data a 0xFF is never followed by the 0xD8 of a beginning. */
function jpegs(stream: Uint8Array): Uint8Array[] {
  const starts: number[] = [];
  for (let at = 0; at + 2 < stream.length; at++) {
    if (stream[at] === 0xff && stream[at + 1] === 0xd8 && stream[at + 2] === 0xff) starts.push(at);
  }
  return starts.map((start, index) => stream.subarray(start, starts[index + 1] ?? stream.length));
}
