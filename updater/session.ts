/** What a running command has at hand: output, the state folder, and the signal to end. */

import { Output } from "../cli/output/output.ts";
import { readEnrollment } from "./device/enrollment.ts";
import { MACHINE } from "./device/machine.ts";
import { StateFolder } from "./device/state_folder.ts";
import { Updater } from "./device/updater.ts";

export const STATE_FOLDER_STANDARD = "/var/lib/edge-updater";

/** The options of a command by their names in camel case, as the parser made them. */
export type Options = Readonly<Record<string, string | number | boolean | readonly string[] | undefined>>;

export type Command = (session: Session, args: readonly string[], options: Options) => Promise<void>;

export class Session {
  readonly out: Output;
  /** Aborted by Ctrl-C and SIGTERM. */
  readonly signal: AbortSignal;
  readonly folder: StateFolder;

  constructor({ json, stateDir }: Options, signal: AbortSignal) {
    this.out = new Output({ json: json === true, quiet: false, noColour: false });
    this.signal = signal;
    this.folder = new StateFolder(
      stateDir as string | undefined ?? Deno.env.get("EDGE_UPDATER_STATE_DIR") ?? STATE_FOLDER_STANDARD,
    );
  }

  /** The updater of the enrolled device. */
  get updater(): Updater {
    return new Updater(this.folder, readEnrollment(this.folder), {
      machine: MACHINE,
      say: this.say,
      signal: this.signal,
    });
  }

  /** A line about what has happened, at once. */
  readonly say = (text: string): void => {
    this.out.line(this.out.isJson ? JSON.stringify({ at: new Date().toISOString(), message: text }) : text);
    this.out.flush();
  };
}
