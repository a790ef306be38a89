/** The recording of a source: a day of it as a strip and as a list with its gaps, a film of a stretch, and a
 * range as a file.
 */

import { useMemo, useState } from "preact/hooks";
import type { NamedSource } from "../../../client/mod.ts";
import { hrefOf, setQuery } from "../../shell/place.ts";
import { bytesText } from "../../text/numbers.ts";
import { clock, durationText, localText } from "../../text/time.ts";
import { TextField } from "../../ui/field.tsx";
import { EmptyNote, FailureNote } from "../../ui/states.tsx";
import { type Column, Table } from "../../ui/table.tsx";
import { DayStrip } from "./day_strip.tsx";
import { RangeForm } from "./range_form.tsx";
import { dayOf, useRecordedDay } from "./recorded_day.ts";
import { StretchPlayer } from "./stretch_player.tsx";
import { bytesBetween, type RecordedStretch, stretchesOf, type WallRange } from "./stretches.ts";

export interface RecordingProps {
  readonly source: NamedSource;
  /** A moment of the day that is shown. */
  readonly askedMs: number;
}

export function Recording({ source, askedMs }: RecordingProps) {
  const { name, recording } = source;
  const day = dayOf(askedMs);
  const { segments, isWhole, failure, reload } = useRecordedDay(name, day);
  const stretches = useMemo(() => stretchesOf(segments), [segments]);
  const [range, setRange] = useState<WallRange | null>(null);
  const [playedMs, setPlayedMs] = useState<number | null>(null);
  const [atMs, setAtMs] = useState<number | null>(null);
  const play = (fromMs: number) => {
    setAtMs(fromMs);
    setPlayedMs(fromMs);
  };
  const choose = (stretch: RecordedStretch, fromMs = stretch.startMs) => {
    setRange({ fromMs, toMs: stretch.endMs });
    play(fromMs);
  };
  const showDay = (ms: number) => {
    setQuery({ t: String(ms) });
    setRange(null);
    setPlayedMs(null);
  };
  const recorded = stretches.filter(({ isGap }) => !isGap);
  const shown = range ??
    (recorded.length > 0 ? { fromMs: recorded[0]!.startMs, toMs: recorded.at(-1)!.endMs } : null);
  return (
    <section class="recording" aria-labelledby="recording">
      <header class="page-head">
        <h2 id="recording">Recording</h2>
        <span class="dim">
          {recording === null
            ? "It is not recorded."
            : `Kept for ${recording.hours} h${
              recording.bytes === null ? "" : `, ${bytesText(recording.bytes)} at most`
            }.`}
        </span>
      </header>
      <div class="row">
        <button
          type="button"
          aria-label="The day before"
          onClick={() => showDay(dayOf(day.startMs - 1).startMs)}
        >
          ◂
        </button>
        <TextField
          label="Day"
          type="date"
          value={localText(day.startMs).slice(0, 10)}
          onInput={(text) => {
            const ms = Date.parse(`${text}T00:00`);
            if (ms > 0) showDay(ms);
          }}
        />
        <button type="button" aria-label="The day after" onClick={() => showDay(day.endMs)}>▸</button>
        <span role="status">{isWhole || failure !== undefined ? "" : "Reading the recording …"}</span>
      </div>
      {failure !== undefined && <FailureNote failure={failure} onRetry={reload} />}
      {isWhole && recorded.length === 0 && (
        <EmptyNote title="Nothing was recorded on this day">
          {recording === null && (
            <p>
              Whoever runs the service adds <code>{"recording = { hours = 48 }"}</code>{" "}
              to the camera in its file to have it recorded all day. Events, pictures and clips are kept
              without it: see <a href={hrefOf(["runs"])}>runs</a>.
            </p>
          )}
        </EmptyNote>
      )}
      {shown !== null && (
        <>
          {playedMs !== null && (
            <StretchPlayer
              key={playedMs}
              source={name}
              stretches={recorded}
              fromMs={playedMs}
              onTime={setAtMs}
              onAgain={play}
            />
          )}
          <DayStrip
            day={day}
            stretches={stretches}
            range={shown}
            atMs={playedMs === null ? null : atMs}
            onPick={(ms) => {
              const stretch = recorded.find(({ endMs }) => endMs > ms);
              if (stretch) choose(stretch, Math.max(ms, stretch.startMs));
            }}
          />
          <RangeForm
            source={name}
            range={shown}
            bytes={bytesBetween(segments, shown.fromMs, shown.toMs)}
            onRange={setRange}
            onPlay={() => play(shown.fromMs)}
          />
          <Table
            name="stretches"
            rows={stretches}
            columns={columns(choose)}
            keyOf={({ startMs, isGap }) => `${startMs}${isGap}`}
            onOpen={(stretch) => stretch.isGap || choose(stretch)}
            sort={{ title: "From", isDown: true }}
          />
        </>
      )}
    </section>
  );
}

function columns(choose: (stretch: RecordedStretch) => void): Column<RecordedStretch>[] {
  return [
    { title: "From", cell: ({ startMs }) => <time>{clock(startMs)}</time>, sortBy: ({ startMs }) => startMs },
    { title: "To", cell: ({ endMs }) => <time>{clock(endMs)}</time>, isExtra: true },
    {
      title: "Length",
      cell: ({ startMs, endMs }) => durationText(endMs - startMs),
      sortBy: ({ startMs, endMs }) => endMs - startMs,
      isNumber: true,
    },
    {
      title: "What",
      cell: (stretch) => <span class={stretch.isGap ? "dim" : undefined}>{whatOf(stretch)}</span>,
    },
    {
      title: "Film",
      cell: (stretch) =>
        stretch.isGap ? "" : (
          <button
            type="button"
            class="quiet"
            aria-label={`Play from ${clock(stretch.startMs)}`}
            onClick={() => choose(stretch)}
          >
            ▸ Play
          </button>
        ),
    },
  ];
}

function whatOf({ isGap, segments }: RecordedStretch): string {
  if (isGap) return "Gap: nothing was recorded";
  const bytes = segments.reduce((sum, segment) => sum + segment.bytes, 0);
  const hasSound = segments.some(({ sound }) => sound === "included");
  return `${bytesText(bytes)}, ${hasSound ? "with" : "without"} sound`;
}
