/** Plays the video of an open live session in a `<video>`, near its newest picture, and asks for it again
 * when it ends.
 */

import { type Signal, signal } from "@preact/signals";
import { isHttpError, type LiveVideo } from "../../client/mod.ts";
import { client } from "./session.ts";

export type LiveVideoState =
  /** Nothing is shown yet, or nothing comes at the moment. */
  | { readonly kind: "waiting"; readonly sentence: string }
  | { readonly kind: "playing"; readonly hasSound: boolean }
  /** It is not asked for again. */
  | { readonly kind: "failed"; readonly sentence: string };

/** How far behind the newest picture it plays. */
const BEHIND_S = 0.4;
/** From here on it plays a little faster, and from there on it jumps. */
const LATE_S = 0.9;
const TOO_LATE_S = 2.5;
const CATCH_UP_RATE = 1.1;
/** What was played is kept for so long. */
const KEPT_S = 15;
const START_MS = 20_000;
const AGAIN_MS = 2_000;

export class LivePlayback {
  readonly state: Signal<LiveVideoState> = signal({ kind: "waiting", sentence: "The live view begins …" });
  readonly #video: HTMLVideoElement;
  readonly #runId: string;
  readonly #ending = new AbortController();

  constructor(video: HTMLVideoElement, runId: string) {
    this.#video = video;
    this.#runId = runId;
    void this.#run();
  }

  close(): void {
    this.#ending.abort();
    this.#video.removeAttribute("src");
    this.#video.load();
  }

  async #run(): Promise<void> {
    const { signal } = this.#ending;
    while (!signal.aborted && this.state.peek().kind !== "failed") {
      try {
        const live = await client.peek().watchLiveVideo(this.#runId, { signal, timeoutMs: START_MS });
        await this.#play(live);
      } catch (failure) {
        if (!signal.aborted) this.#onFailure(failure);
      }
      await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
    }
  }

  #onFailure(failure: unknown): void {
    const refusal = isHttpError(failure) ? failure : null;
    if (refusal?.status === 422) {
      const why = refusal.apiError?.details[0]?.message ?? refusal.message;
      this.state.value = { kind: "failed", sentence: `There is no live view: it ${why}.` };
    } else if (refusal?.status === 503) {
      this.state.value = { kind: "failed", sentence: `There is no live view: ${refusal.apiError?.message}.` };
    } else {
      this.#wait();
    }
  }

  #wait(): void {
    this.state.value = { kind: "waiting", sentence: "Nothing comes at the moment; it is asked for again." };
  }

  /** To the end of the stream. */
  async #play({ mediaType, stream }: LiveVideo): Promise<void> {
    if (!globalThis.MediaSource?.isTypeSupported(mediaType)) {
      void stream.cancel();
      this.state.value = { kind: "failed", sentence: unplayable(mediaType) };
      return;
    }
    const media = new MediaSource();
    const url = URL.createObjectURL(media);
    const failed = new AbortController();
    const fail = () => {
      this.state.value = { kind: "failed", sentence: unplayable(mediaType) };
      failed.abort();
    };
    this.#video.addEventListener("error", fail, { signal: this.#ending.signal });
    try {
      await once(media, "sourceopen", () => this.#video.src = url);
      const buffer = media.addSourceBuffer(mediaType);
      const reader = stream.getReader();
      for (;;) {
        const { done, value } = await reader.read();
        if (done || this.#ending.signal.aborted || failed.signal.aborted) break;
        await once(buffer, "updateend", () => buffer.appendBuffer(new Uint8Array(value)));
        await this.#follow(buffer, mediaType);
      }
      void reader.cancel().catch(() => {/* it has ended */});
      if (!failed.signal.aborted) this.#wait();
    } finally {
      this.#video.removeEventListener("error", fail);
      URL.revokeObjectURL(url);
    }
  }

  /** Stays near the end of what has come, also behind a gap. */
  async #follow(buffer: SourceBuffer, mediaType: string): Promise<void> {
    const video = this.#video;
    const { buffered } = buffer;
    if (buffered.length === 0) return;
    const [beginS, endS] = [buffered.start(buffered.length - 1), buffered.end(buffered.length - 1)];
    const lateS = endS - video.currentTime;
    if (video.currentTime < beginS || lateS > TOO_LATE_S) {
      video.currentTime = Math.max(beginS, endS - BEHIND_S);
      video.playbackRate = 1;
    } else {
      if (lateS > LATE_S) video.playbackRate = CATCH_UP_RATE;
      if (lateS < BEHIND_S) video.playbackRate = 1;
    }
    if (video.paused) void video.play().catch(() => {/* it was closed */});
    if (!video.paused && video.readyState >= HTMLMediaElement.HAVE_CURRENT_DATA) {
      const hasSound = mediaType.includes(",");
      if (this.state.peek().kind !== "playing") this.state.value = { kind: "playing", hasSound };
    }
    if (video.currentTime - buffered.start(0) > 2 * KEPT_S) {
      await once(buffer, "updateend", () => buffer.remove(0, video.currentTime - KEPT_S));
    }
  }
}

/** Does what leads to the event, and waits for it. */
async function once(target: EventTarget, event: string, begin: () => void): Promise<void> {
  const come = new Promise((resolve) => target.addEventListener(event, resolve, { once: true }));
  begin();
  await come;
}

const NAMES: Readonly<Record<string, string>> = { avc1: "H.264", hvc1: "H.265" };

function unplayable(mediaType: string): string {
  const codec = /codecs="(\w+)/.exec(mediaType)?.[1] ?? "";
  return `This browser cannot play ${
    NAMES[codec] ?? "the codec of this source"
  }. Pictures are shown instead, once a second.`;
}
