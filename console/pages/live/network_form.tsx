/** A camera on the network or an HLS stream, which the service watches itself. */

import { useState } from "preact/hooks";
import { client } from "../../service/session.ts";
import { go } from "../../shell/place.ts";
import { sourceName } from "../../text/names.ts";
import { TextField } from "../../ui/field.tsx";
import { SourceField } from "../../ui/source_field.tsx";
import { FailureNote } from "../../ui/states.tsx";
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

export function NetworkForm(
  { wish, onWish }: { wish: SessionWish; onWish: (changes: Partial<SessionWish>) => void },
) {
  const [address, setAddress] = useState("");
  const region = regionOf(wish);
  const [isTried, setTried] = useState(false);
  const [isBusy, setBusy] = useState(false);
  const [failure, setFailure] = useState<unknown>(undefined);
  const fault = addressFault(address.trim());
  const start = async (event: Event) => {
    event.preventDefault();
    setTried(true);
    if (fault || !isComplete(wish)) return;
    setBusy(true);
    setFailure(undefined);
    try {
      go(["live", await watched(address.trim(), wish)]);
    } catch (thrown) {
      setFailure(thrown);
      setBusy(false);
    }
  };
  return (
    <form class={region ? "live-form" : "live-form is-plain"} onSubmit={start} noValidate>
      {region && (
        <div class="live-picture">
          <ZoneEditor
            name={wish.area === "part" ? "part" : "zone"}
            region={region}
            aspect={16 / 9}
            onChange={(changed) => onWish(regionChange(wish, changed))}
          >
            <div class="live-curtain">
              <p>The picture comes once the service watches the camera; the part may be drawn before.</p>
            </div>
          </ZoneEditor>
        </div>
      )}
      <div class="form live-fields">
        <SourceField address={address} onChange={setAddress} isLive />
        <TextField
          label="Address"
          value={address}
          onInput={setAddress}
          placeholder="rtsps://camera.example.org/1"
          hint="rtsp, rtsps, an HLS playlist, or JPEGs over https; the media comes inside the RTSP connection (TCP)"
          fault={isTried ? fault : undefined}
          autocomplete="off"
        />
        <SessionFields wish={wish} onChange={onWish} />
        {failure !== undefined && <FailureNote failure={failure} />}
        <div class="row">
          <button type="submit" class="primary" disabled={isBusy || hasNoProgram(wish)}>
            {isBusy ? "Connecting to the camera …" : "Watch it"}
          </button>
        </div>
      </div>
    </form>
  );
}

function addressFault(address: string): string | undefined {
  if (address === "") return "Enter the address of a camera or a stream.";
  return /^((rtsps?|https?):\/\/|source:)\S+$/i.test(address)
    ? undefined
    : "It must begin with rtsp://, rtsps:// or https://.";
}

/** The run that watches the source. Where that is refused, no run is left. */
async function watched(
  address: string,
  wish: SessionWish,
): Promise<string> {
  const service = client.peek();
  const { run_id: runId } = await service.createRun();
  try {
    await service.openLiveSource(runId, {
      source_uri: address,
      ...attachOf(wish, sourceName(address)),
    }, { timeoutMs: OPEN_MS });
  } catch (error) {
    await service.deleteRun(runId).catch(() => {});
    throw error;
  }
  return runId;
}

/** The service connects to the camera and looks at its stream before it answers. */
const OPEN_MS = 60_000;
