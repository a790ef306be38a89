/** What a player finds in a media file: its streams, and every frame of them, decoded. */

export interface PlayedFile {
  /** Codecs by ffprobe, the video first. */
  readonly codecs: readonly string[];
  /** Sizes of all decoded pictures, each size once, as `160x120`. */
  readonly sizes: readonly string[];
  readonly pictures: number;
  /** Milliseconds from the begin of the first to the end of the last picture. */
  readonly videoMs: number;
  /** The samples that were decoded, milliseconds; 0 without sound. */
  readonly soundMs: number;
  /** When the first sound is heard, milliseconds from the first picture; 0 without sound. */
  readonly soundFromMs: number;
  /** What the decoders complain of; empty for a file that plays whole. */
  readonly errors: string;
}

interface Stream {
  readonly codec_type: "video" | "audio";
  readonly codec_name: string;
  readonly sample_rate?: string;
}

interface Frame {
  readonly media_type: "video" | "audio";
  readonly pts_time: string;
  readonly duration_time?: string;
  readonly pkt_duration_time?: string;
  readonly width?: number;
  readonly height?: number;
  readonly nb_samples?: number;
}

export function playedFile(path: string): PlayedFile {
  const { streams, frames } = JSON.parse(
    output("ffprobe", [
      ...["-v", "quiet", "-show_streams", "-show_frames", "-of", "json", path],
    ]).stdout,
  ) as { streams: readonly Stream[]; frames: readonly Frame[] };
  const pictures = frames.filter(({ media_type }) => media_type === "video");
  const sound = frames.filter(({ media_type }) => media_type === "audio");
  const rate = Number(streams.find(({ codec_type }) => codec_type === "audio")?.sample_rate ?? 1);
  const samples = sound.reduce((sum, { nb_samples = 0 }) => sum + nb_samples, 0);
  const [first, last] = [pictures[0], pictures.at(-1)];
  const lastS = Number(last?.duration_time ?? last?.pkt_duration_time ?? 0);
  return {
    codecs: streams.toSorted((one) => one.codec_type === "video" ? -1 : 1).map(({ codec_name }) =>
      codec_name
    ),
    sizes: [...new Set(pictures.map(({ width, height }) => `${width}x${height}`))],
    pictures: pictures.length,
    videoMs: Math.round((Number(last?.pts_time) + lastS - Number(first?.pts_time)) * 1000),
    soundMs: Math.round(samples / rate * 1000),
    soundFromMs: sound[0] ? Math.round((Number(sound[0].pts_time) - Number(first?.pts_time)) * 1000) : 0,
    errors: complaints(path),
  };
}

/**
 * What ffmpeg complains of when it only reads and decodes: a program that takes the frames wants a steady
 * rate, which some cameras do not keep.
 */
function complaints(path: string): string {
  const { stderr } = output("ffmpeg", ["-nostdin", "-v", "error", "-i", path, "-f", "null", "-"]);
  return stderr.split("\n").filter((line) => !line.startsWith("[null @")).join("\n");
}

function output(program: string, args: readonly string[]): { stdout: string; stderr: string } {
  const { stdout, stderr } = new Deno.Command(program, { args: [...args], stdin: "null" }).outputSync();
  const [text, errors] = [stdout, stderr].map((bytes) => new TextDecoder().decode(bytes));
  return { stdout: text!, stderr: errors! };
}
