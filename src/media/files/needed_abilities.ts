/** PORT through which work on files waits until it is known that ffmpeg can do it: `ToolTrials` tries it. */

/** What ffmpeg must be able to do for work on files. */
export type NeededAbility = "probe" | "decode" | "jpegs" | "picture";

export interface NeededAbilities {
  /** Waits for the trials of these abilities; refuses (503 `decoder_unusable`) where one has failed. */
  require(...abilities: readonly NeededAbility[]): Promise<void>;
  /** Refuses a codec of which this ffmpeg has no decoder, though every ffmpeg should. */
  requireDecoder(codec: string): Promise<void>;
}
