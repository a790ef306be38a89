/** Single values in the text of a page: ids, times, states. */

import { mediaTime } from "../text/time.ts";
import { ago, dateAndClock } from "../text/time.ts";
import { shortId } from "../text/names.ts";
import { tell } from "./toast.tsx";

/** An id without its middle; whole on hover, and a click copies it whole. */
export function Id({ value }: { value: string }) {
  return (
    <button
      type="button"
      class="id mono"
      title={`${value}: click to copy`}
      onClick={() => copy(value)}
    >
      {shortId(value)}
    </button>
  );
}

/** Puts a text onto the clipboard and says so. */
export async function copy(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    tell("Copied");
  } catch {
    tell(`This browser does not copy here. The text: ${text}`);
  }
}

export function MediaTime({ ms }: { ms: number }) {
  return <time class="number">{mediaTime(ms)}</time>;
}

/** Wall-clock time, as long ago; the date on hover. */
export function Ago({ ms }: { ms: number }) {
  return (
    <time
      class="number"
      dateTime={new Date(ms).toISOString()}
      title={dateAndClock(ms)}
    >
      {ago(ms)}
    </time>
  );
}

const STATES: Readonly<
  Record<string, { readonly mark: string; readonly tone: string }>
> = {
  pending: { mark: "○", tone: "calm" },
  processing: { mark: "◐", tone: "busy" },
  completed: { mark: "●", tone: "good" },
  cancelled: { mark: "◌", tone: "calm" },
  expired: { mark: "◌", tone: "calm" },
  failed: { mark: "✕", tone: "bad" },
};

/** A state with a shape of its own, so that nobody needs its colour. */
export function Status({ of }: { of: string }) {
  const { mark, tone } = STATES[of] ?? { mark: "○", tone: "calm" };
  return (
    <span class={`status is-${tone}`}>
      <span aria-hidden="true">{mark}</span> {of}
    </span>
  );
}
