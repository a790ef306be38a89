/** The camera or the screen of this computer: opened, looked at, given a zone and a question, and published.
 */

import { useEffect, useRef, useState } from "preact/hooks";
import { useLoaded } from "../../service/loaded.ts";
import { go } from "../../shell/place.ts";
import { ChoiceField } from "../../ui/field.tsx";
import { FailureNote } from "../../ui/states.tsx";
import {
  cameras,
  captureBarrier,
  type CaptureFault,
  captureFault,
  type CaptureKind,
  openCapture,
  stopTracks,
} from "./capture.ts";
import { isPublished, publishedRun, publishStream } from "./publication.ts";
import { StreamVideo } from "./stream_video.tsx";
import { ZoneEditor } from "../../ui/zone_editor.tsx";
import { SessionFields } from "./wish/session_fields.tsx";
import {
  attachOf,
  hasNoProgram,
  isComplete,
  regionChange,
  regionOf,
  type SessionWish,
} from "./wish/session_wish.ts";

export interface PublishFormProps {
  readonly kind: CaptureKind;
  readonly wish: SessionWish;
  readonly onWish: (changes: Partial<SessionWish>) => void;
}

const WORDS = { camera: "camera", screen: "screen" } as const;

export function PublishForm({ kind, wish, onWish }: PublishFormProps) {
  const [stream, setStream] = useState<MediaStream | null>(null);
  const [fault, setFault] = useState<CaptureFault | null>(captureBarrier);
  const [failure, setFailure] = useState<unknown>(undefined);
  const [deviceId, setDeviceId] = useState("");
  const [aspect, setAspect] = useState(16 / 9);
  const [isBusy, setBusy] = useState(false);
  useGivenBack(stream);
  const isBarred = captureBarrier() !== null;
  const hasSound = wish.sound !== null;

  const open = async (device: string, hasSound: boolean) => {
    setFault(null);
    setBusy(true);
    stopTracks(stream);
    try {
      const opened = await openCapture(kind, {
        deviceId: device,
        hasSound,
      });
      opened.getVideoTracks()[0]?.addEventListener(
        "ended",
        () => setStream(null),
      );
      setStream(opened);
    } catch (error) {
      setStream(null);
      setFault(captureFault(kind, error));
    }
    setBusy(false);
  };
  const hasTrack = (stream?.getAudioTracks().length ?? 0) > 0;
  const change = (changes: Partial<SessionWish>) => {
    onWish(changes);
    const { sound = wish.sound } = changes;
    // A microphone is asked for once it is wanted.
    if (stream && (sound === null) !== (wish.sound === null)) void open(deviceId, sound !== null);
  };
  const start = async (event: Event) => {
    event.preventDefault();
    if (stream === null || !isComplete(wish)) return;
    setBusy(true);
    setFailure(undefined);
    try {
      const device = stream.getVideoTracks()[0]?.label ?? "";
      const runId = await publishStream(stream, attachOf(wish, device));
      go(["live", runId]);
    } catch (thrown) {
      setFailure(thrown);
      setBusy(false);
    }
  };

  return (
    <form class="live-form" onSubmit={start} noValidate>
      <div class="live-picture">
        <ZoneEditor
          name={wish.area === "part" ? "part" : "zone"}
          region={stream && regionOf(wish)}
          aspect={aspect}
          onChange={(region) => onWish(regionChange(wish, region))}
        >
          {stream ? <StreamVideo stream={stream} onAspect={setAspect} /> : (
            <Curtain
              kind={kind}
              fault={fault}
              isBusy={isBusy}
              isBarred={isBarred}
              onOpen={() => void open(deviceId, hasSound)}
            />
          )}
        </ZoneEditor>
        {stream && (
          <p class="hint">
            This is what will be sent{hasTrack ? ", with sound" : ": no sound"}, and nothing before you start.
          </p>
        )}
      </div>
      <div class="form live-fields">
        {stream && kind === "camera" && (
          <CameraChoice
            chosen={deviceId}
            onChoose={(id) => {
              setDeviceId(id);
              void open(id, hasSound);
            }}
          />
        )}
        <SessionFields wish={wish} onChange={change} />
        {stream && hasSound && !hasTrack && (
          <p class="fault" role="alert">
            {kind === "screen"
              ? "Your browser shares no sound of what you chose: choose a tab, and allow its sound."
              : "The browser gives no sound: connect a microphone and allow it."}
          </p>
        )}
        {publishedRun() !== null && (
          <p class="hint">
            This tab publishes already: that session ends when the new one starts.
          </p>
        )}
        {failure !== undefined && <FailureNote failure={failure} />}
        <div class="row">
          <button
            type="submit"
            class="primary"
            disabled={stream === null || isBusy || (hasSound && !hasTrack) || hasNoProgram(wish)}
          >
            {isBusy && stream ? "Starting …" : "Start"}
          </button>
          {stream && (
            <button
              type="button"
              disabled={isBusy}
              onClick={() => {
                stopTracks(stream);
                setStream(null);
              }}
            >
              Close the {WORDS[kind]}
            </button>
          )}
          {!stream && !isBarred && <span class="hint">Open the {WORDS[kind]} first.</span>}
        </div>
      </div>
    </form>
  );
}

interface CurtainProps {
  readonly kind: CaptureKind;
  readonly fault: CaptureFault | null;
  readonly isBusy: boolean;
  readonly isBarred: boolean;
  readonly onOpen: () => void;
}

/** In place of the picture while there is none. */
function Curtain({ kind, fault, isBusy, isBarred, onOpen }: CurtainProps) {
  return (
    <div class="live-curtain">
      {fault && (
        <p role="alert">
          <strong>{fault.what}</strong> {fault.todo}
        </p>
      )}
      {isBusy && (
        <p role="status">
          Waiting for the browser: it may ask you for permission.
        </p>
      )}
      {!isBusy && !isBarred && (
        <button type="button" class="primary" onClick={onOpen}>
          {fault ? "Try again" : kind === "camera" ? "Open the camera" : "Choose a screen or window"}
        </button>
      )}
    </div>
  );
}

function CameraChoice(
  { chosen, onChoose }: {
    chosen: string;
    onChoose: (deviceId: string) => void;
  },
) {
  const known = useLoaded(() => cameras(), []);
  if (!known.value || known.value.length < 2) return null;
  return (
    <ChoiceField
      label="Camera"
      value={chosen}
      onChange={onChoose}
      choices={[
        { value: "", text: "The browser's choice" },
        ...known.value.map(({ deviceId, label }) => ({
          value: deviceId,
          text: label || "A camera",
        })),
      ]}
    />
  );
}

/** The camera is given back when the form is left, unless it is published by then. */
function useGivenBack(stream: MediaStream | null): void {
  const last = useRef(stream);
  last.current = stream;
  useEffect(() => () => {
    if (last.current && !isPublished(last.current)) stopTracks(last.current);
  }, []);
}
