/** Giving way in long work, so that other requests get their turn. */

/** Resolves when everything that was ready before has run. Not a wait: nothing depends on how long it takes. */
export function giveWay(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 0));
}
