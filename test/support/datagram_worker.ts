/** Sends one datagram to a given path with the permissions of the service, and reports the result. */

import { quietLog } from "../../src/base/log.ts";
import { realWorld } from "../../src/base/world.ts";
import { TriggerDatagramSender } from "../../src/remote/trigger_datagram_sender.ts";

const scope = globalThis as unknown as {
  onmessage: (message: MessageEvent<string>) => void;
  postMessage(answer: string): void;
};

scope.onmessage = async ({ data: path }) => {
  try {
    using output = TriggerDatagramSender.open(path, realWorld(quietLog()));
    scope.postMessage(await output.send("from inside") ? "taken" : "lost");
  } catch (error) {
    scope.postMessage(String(error));
  }
};
