/** Why a request gets no answer: the reason and the words that go over the wire, and under which status. */

import type { Status } from "../model/sidecars/audio_protocol.ts";
import type { SidecarFailure } from "../model/sidecars/local_audio.ts";

/** The message names neither addresses nor keys nor what was heard. */
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
