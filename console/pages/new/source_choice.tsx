/** What is to be analyzed: a file of this computer, or a source that the service can reach. */

import { useRef, useState } from "preact/hooks";
import { bytesText } from "../../text/numbers.ts";
import { TextField } from "../../ui/field.tsx";
import { SourceField } from "../../ui/source_field.tsx";

export interface SourceChoiceProps {
  readonly file: File | null;
  readonly address: string;
  readonly onFile: (file: File | null) => void;
  readonly onAddress: (address: string) => void;
}

export function SourceChoice(
  { file, address, onFile, onAddress }: SourceChoiceProps,
) {
  const input = useRef<HTMLInputElement>(null);
  const [isOver, setOver] = useState(false);
  return (
    <div class="source-choice">
      <div
        class={`drop${isOver ? " is-over" : ""}`}
        onDragOver={(event) => {
          event.preventDefault();
          setOver(true);
        }}
        onDragLeave={() => setOver(false)}
        onDrop={(event) => {
          event.preventDefault();
          setOver(false);
          const dropped = event.dataTransfer?.files[0];
          if (dropped) onFile(dropped);
        }}
      >
        <input
          ref={input}
          type="file"
          hidden
          aria-label="Film"
          accept="video/*,.mp4,.webm,.mov,.avi,.mkv"
          onChange={({ currentTarget: { files } }) => files?.[0] && onFile(files[0])}
        />
        {file
          ? (
            <p>
              <strong>{file.name}</strong> <span class="number dim">{bytesText(file.size)}</span>{" "}
              <button type="button" class="quiet" onClick={() => onFile(null)}>
                Take another
              </button>
            </p>
          )
          : (
            <>
              <p>Drop a film here</p>
              <button type="button" onClick={() => input.current!.click()}>
                Choose a file …
              </button>
            </>
          )}
      </div>
      {!file && <SourceField address={address} onChange={onAddress} />}
      {!file && (
        <TextField
          label="or the address of a source"
          hint="A file of an ingest folder of the service, or http(s), HLS, rtsp(s) where the service may reach it"
          value={address}
          onInput={onAddress}
          placeholder="https://example.com/film.mp4"
          autocomplete="off"
        />
      )}
    </div>
  );
}
