/** A camera on the network or an HLS stream, which the service watches itself. */

import { useState } from "preact/hooks";
import { client } from "../../service/session.ts";
import { go } from "../../shell/place.ts";
import { sourceName } from "../../text/names.ts";
import { TextField } from "../../ui/field.tsx";
import { FailureNote } from "../../ui/states.tsx";
import { promptFault, PromptField } from "./prompt_field.tsx";
import { ZoneEditor } from "../../ui/zone_editor.tsx";
import { ZoneChoice, zoneFaults, zoneOf, type ZoneWish } from "./zone_wish.tsx";

export function NetworkForm(
  { prompt, onPrompt }: { prompt: string; onPrompt: (prompt: string) => void },
) {
  const [address, setAddress] = useState("");
  const [zone, setZone] = useState<ZoneWish | null>(null);
  const [isTried, setTried] = useState(false);
  const [isBusy, setBusy] = useState(false);
  const [failure, setFailure] = useState<unknown>(undefined);
  const fault = addressFault(address.trim());
  const start = async (event: Event) => {
    event.preventDefault();
    setTried(true);
    const zoneFault = zone &&
      Object.values(zoneFaults(zone)).find((fault) => fault !== undefined);
    if (fault || promptFault(prompt) || zoneFault) return;
    setBusy(true);
    setFailure(undefined);
    try {
      go(["live", await watched(address.trim(), prompt.trim(), zone)]);
    } catch (thrown) {
      setFailure(thrown);
      setBusy(false);
    }
  };
  return (
    <form class={zone ? "live-form" : "live-form is-plain"} onSubmit={start} noValidate>
      {zone && (
        <div class="live-picture">
          <ZoneEditor
            region={zone.region}
            aspect={16 / 9}
            onChange={(region) => setZone({ ...zone, region })}
          >
            <div class="live-curtain">
              <p>The picture comes once the service watches the camera; the zone may be drawn before.</p>
            </div>
          </ZoneEditor>
        </div>
      )}
      <div class="form live-fields">
        <TextField
          label="Address"
          value={address}
          onInput={setAddress}
          placeholder="rtsps://camera.example.org/1"
          hint="rtsp, rtsps, or an HLS playlist over https; the media comes inside the RTSP connection (TCP)"
          fault={isTried ? fault : undefined}
          autocomplete="off"
        />
        <PromptField prompt={prompt} onPrompt={onPrompt} />
        <ZoneChoice wish={zone} onChange={setZone} />
        {failure !== undefined && <FailureNote failure={failure} />}
        <div class="row">
          <button type="submit" class="primary" disabled={isBusy}>
            {isBusy ? "Connecting to the camera …" : "Watch it"}
          </button>
        </div>
      </div>
    </form>
  );
}

function addressFault(address: string): string | undefined {
  if (address === "") return "Enter the address of a camera or a stream.";
  return /^(rtsps?|https?):\/\/\S+$/i.test(address)
    ? undefined
    : "It must begin with rtsp://, rtsps:// or https://.";
}

/** The run that watches the source. Where that is refused, no run is left. */
async function watched(
  address: string,
  prompt: string,
  zone: ZoneWish | null,
): Promise<string> {
  const service = client.peek();
  const { run_id: runId } = await service.createRun();
  try {
    await service.openLiveSource(runId, {
      source_uri: address,
      ...(prompt !== "" && { prompt }),
      ...(zone && { restricted_zone: zoneOf(zone, sourceName(address)) }),
    }, { timeoutMs: OPEN_MS });
  } catch (error) {
    await service.deleteRun(runId).catch(() => {});
    throw error;
  }
  return runId;
}

/** The service connects to the camera and looks at its stream before it answers. */
const OPEN_MS = 60_000;
