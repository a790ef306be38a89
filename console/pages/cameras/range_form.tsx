/** A range of a recording, to be played or saved as one MP4. */

import { useEffect, useRef, useState } from "preact/hooks";
import { client, SERVICE_URL } from "../../service/session.ts";
import { bytesText } from "../../text/numbers.ts";
import { dateAndClock, durationText, localText } from "../../text/time.ts";
import { TextField } from "../../ui/field.tsx";
import { saveFile } from "../../ui/save_file.ts";
import { FailureNote } from "../../ui/states.tsx";
import { tell } from "../../ui/toast.tsx";
import { copy } from "../../ui/value.tsx";
import type { WallRange } from "./stretches.ts";

export interface RangeFormProps {
  readonly source: string;
  readonly range: WallRange;
  /** Of its segments, as far as they are known. */
  readonly bytes: number;
  readonly onRange: (range: WallRange) => void;
  readonly onPlay: () => void;
}

/** A file goes through the memory of the tab. */
const BYTES_MAX = 1e9;
const EXPORT_MS = 1_800_000;

export function RangeForm({ source, range, bytes, onRange, onPlay }: RangeFormProps) {
  const [saving, setSaving] = useState<AbortController | null>(null);
  const [failure, setFailure] = useState<unknown>(undefined);
  const open = useRef<AbortController | null>(null);
  useEffect(() => () => open.current?.abort(), []);
  const { fromMs, toMs } = range;
  const fault = toMs <= fromMs ? "It must be after the begin." : undefined;
  const isTooLarge = bytes > BYTES_MAX;
  const save = async (event: Event) => {
    event.preventDefault();
    if (fault !== undefined || isTooLarge || saving) return;
    const ending = open.current = new AbortController();
    setSaving(ending);
    setFailure(undefined);
    try {
      const film = await client.peek().exportRecording(source, { from: fromMs, to: toMs }, {
        ...{ signal: ending.signal, timeoutMs: EXPORT_MS },
      });
      const name = `${source}-${localText(fromMs).replaceAll(":", "")}.mp4`;
      saveFile(name, film);
      tell(`Saved ${name}`);
    } catch (thrown) {
      if (!ending.signal.aborted) setFailure(thrown);
    }
    setSaving(null);
  };
  const set = (name: keyof WallRange) => (text: string) => {
    const ms = Date.parse(text);
    if (ms > 0) onRange({ ...range, [name]: ms });
  };
  return (
    <form class="card" onSubmit={save} noValidate aria-label="A range of the recording">
      <div class="row range-fields">
        <TextField
          {...{ label: "From", type: "datetime-local", step: 1, value: localText(fromMs) }}
          onInput={set("fromMs")}
        />
        <TextField
          {...{ label: "To", type: "datetime-local", step: 1, value: localText(toMs), fault }}
          onInput={set("toMs")}
        />
      </div>
      <div class="row">
        <button type="button" onClick={onPlay}>Play</button>
        <button type="submit" class="primary" disabled={saving !== null || isTooLarge || fault !== undefined}>
          {saving ? "Exporting …" : "Export as MP4"}
        </button>
        {saving && <button type="button" onClick={() => saving.abort()}>Cancel</button>}
        <span class="dim">
          {fault === undefined && `${durationText(toMs - fromMs)}, about ${bytesText(bytes)}`}
        </span>
      </div>
      {isTooLarge && (
        <p class="fault" role="alert">
          This is too much for a tab of a browser: export it in a terminal, or choose a shorter range.
        </p>
      )}
      {failure !== undefined && <FailureNote failure={failure} />}
      <Terminal source={source} range={range} isOpen={isTooLarge} />
    </form>
  );
}

function Terminal(
  { source, range: { fromMs, toMs }, isOpen }: { source: string; range: WallRange; isOpen: boolean },
) {
  const url = `${SERVICE_URL}/v1/sources/${
    encodeURIComponent(source)
  }/recordings/export?from=${fromMs}&to=${toMs}`;
  const text = `curl -fH "x-api-key: your-key" -o ${source}.mp4 "${url}"`;
  return (
    <details open={isOpen}>
      <summary>The same in a terminal</summary>
      <pre tabIndex={0} aria-label={`Export from ${dateAndClock(fromMs)}`}>{text}</pre>
      <button type="button" class="quiet" onClick={() => copy(text)}>Copy</button>
    </details>
  );
}
