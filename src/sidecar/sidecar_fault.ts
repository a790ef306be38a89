/** Why a request failed: the reason, the message and the status that go over the wire. */

import type { Status } from "../model/sidecars/audio_protocol.ts";
import type { SidecarFailure } from "../model/sidecars/local_audio.ts";

/** The message contains no address, no key and nothing of the audio. */
export class SidecarFault extends Error {
  override readonly name = "SidecarFault";

  constructor(
    readonly reason: SidecarFailure,
    message: string,
    readonly status: Exclude<Status, "ok"> = "inference_error",
  ) {
    super(message);
  }
}
