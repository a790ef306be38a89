/** Pipes of the C library: made for this user alone, over nothing that is there, and as wide as is asked for.
 */

import { equal, throws } from "node:assert/strict";
import { join } from "node:path";
import { openNativePipes } from "../../../src/media/broker/native_pipes.ts";
import { TempFolder } from "../../support/media.ts";

/** How many bytes go into the pipe at `path` before its writer would have to wait. */
function roomOf(path: string): number {
  // dd stops with an error at the first write for which there is no room.
  const { stderr } = new Deno.Command("dd", {
    args: ["if=/dev/zero", `of=${path}`, "bs=4096", "count=512", "oflag=nonblock", "conv=nocreat,notrunc"],
    env: { LC_ALL: "C" },
  }).outputSync();
  return Number(/(\d+) bytes/.exec(new TextDecoder().decode(stderr))![1]);
}

Deno.test("a pipe is made for this user, and not over what is there", () => {
  using folder = new TempFolder();
  using pipes = openNativePipes()!;
  const path = join(folder.path, "a pipe ü");
  pipes.make(path);
  const facts = Deno.lstatSync(path);
  equal(facts.isFifo, true);
  equal(facts.mode! & 0o777, 0o600);
  throws(() => pipes.make(path), /Cannot make a named pipe/);
});

Deno.test("a pipe that is open holds as much as it was widened to; a link is not followed", () => {
  using folder = new TempFolder();
  using pipes = openNativePipes()!;
  const [wide, narrow, link] = ["wide", "narrow", "link"].map((name) => join(folder.path, name)) as [
    string,
    string,
    string,
  ];
  pipes.make(wide);
  pipes.make(narrow);
  Deno.symlinkSync(narrow, link);
  using _wide = Deno.openSync(wide, { read: true, write: true });
  using _narrow = Deno.openSync(narrow, { read: true, write: true });
  pipes.widen(wide, 256 * 1024);
  pipes.widen(link, 256 * 1024);
  pipes.widen(join(folder.path, "nothing"), 256 * 1024);
  equal(roomOf(wide), 256 * 1024);
  equal(roomOf(narrow), 64 * 1024);
});

Deno.test({
  name: "without the permission for native code there are none",
  permissions: { ffi: false },
  fn: () => equal(openNativePipes(), null),
});
