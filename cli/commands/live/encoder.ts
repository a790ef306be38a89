/** ffmpeg as a camera: encodes a file at its own pace as VP8 and Opus, and hands over the RTP packets. */

import { createSocket, type Socket } from "node:dgram";
import { once } from "node:events";
import { CliError } from "../../failure.ts";
import type { Peer } from "./peer.ts";

export interface PlayedFile {
  readonly path: string;
  /** Whether it begins again when it is over. */
  readonly isLoop: boolean;
}

/** With the headers of SRTP, UDP and IP below what every network carries. */
const PACKET_BYTES = 1_180;
const KEY_FRAME_EVERY = 60;
const LOOPBACK = "127.0.0.1";
const MESSAGE_CHARACTERS = 500;

export class Encoder implements AsyncDisposable {
  readonly hasSound: boolean;
  readonly #ffmpeg: string;
  readonly #file: PlayedFile;
  readonly #video = createSocket("udp4");
  readonly #sound = createSocket("udp4");
  #child: Deno.ChildProcess | undefined;
  /** Resolves when the file is over; rejects when ffmpeg fails. */
  ended: Promise<void> = Promise.resolve();

  private constructor(ffmpeg: string, file: PlayedFile, hasSound: boolean) {
    this.#ffmpeg = ffmpeg;
    this.#file = file;
    this.hasSound = hasSound;
  }

  /** Finds out what is in the file, and opens the sockets that receive ffmpeg's packets. */
  static async open(ffmpeg: string, file: PlayedFile): Promise<Encoder> {
    const encoder = new Encoder(ffmpeg, file, await hasSound(file.path));
    for (const socket of [encoder.#video, encoder.#sound]) {
      socket.bind(0, LOOPBACK);
      await once(socket, "listening");
    }
    return encoder;
  }

  start(peer: Peer): void {
    this.#video.on("message", (packet: Uint8Array) => peer.sendVideo(packet));
    this.#sound.on("message", (packet: Uint8Array) => peer.sendSound(packet));
    const { path, isLoop } = this.#file;
    const rtp = (socket: Socket) => `rtp://${LOOPBACK}:${socket.address().port}?pkt_size=${PACKET_BYTES}`;
    const sound = ["-map", "0:a:0", "-c:a", "libopus", "-ar", "48000", "-ac", "2", "-payload_type", "111"];
    const args = [
      ...["-v", "error", "-nostdin", "-re", ...(isLoop ? ["-stream_loop", "-1"] : []), "-i", `file:${path}`],
      ...["-map", "0:v:0", "-c:v", "libvpx", "-deadline", "realtime", "-cpu-used", "8", "-b:v", "2M"],
      ...[
        "-vf",
        "scale='min(1280,iw)':-2,format=yuv420p",
        "-auto-alt-ref",
        "0",
        "-g",
        String(KEY_FRAME_EVERY),
      ],
      ...["-payload_type", "96", "-f", "rtp", rtp(this.#video)],
      ...(this.hasSound ? [...sound, "-f", "rtp", rtp(this.#sound)] : []),
    ];
    this.#child = new Deno.Command(this.#ffmpeg, { args, stdin: "null", stdout: "null", stderr: "piped" })
      .spawn();
    this.ended = finished(this.#child, path);
    this.ended.catch(() => {});
  }

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      this.#child?.kill("SIGKILL");
    } catch {
      // It has ended.
    }
    await this.ended.catch(() => {});
    this.#video.close();
    this.#sound.close();
  }
}

async function finished(child: Deno.ChildProcess, path: string): Promise<void> {
  const { success, stderr, signal } = await child.output();
  if (success || signal !== null) return;
  const said = new TextDecoder().decode(stderr).trim().slice(0, MESSAGE_CHARACTERS);
  throw new CliError("failed", `ffmpeg cannot play ${path}: ${said}`);
}

/** False also where there is no ffprobe. */
async function hasSound(path: string): Promise<boolean> {
  const ffprobe = Deno.env.get("SERVICE_FFPROBE_PATH") || "ffprobe";
  const args = ["-v", "error", "-select_streams", "a", "-show_entries", "stream=index", "-of", "csv=p=0"];
  try {
    const probe = new Deno.Command(ffprobe, {
      args: [...args, `file:${path}`],
      stdin: "null",
      stderr: "null",
    });
    return (await probe.output()).stdout.length > 0;
  } catch {
    return false;
  }
}
