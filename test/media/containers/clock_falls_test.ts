/** Bytes that look like the times of a film, and are none. */

import { equal } from "node:assert/strict";
import { clockFalls } from "../../../src/media/containers/clock_falls.ts";
import { TempFolder } from "../../support/media.ts";

Deno.test("a cluster of Matroska of any form may end a file wherever it likes", async () => {
  using folder = new TempFolder();
  const [none, checksum, timestamp, longest] = [0, 0xbf, 0xe7, 0x88];
  for (let bytes = 5; bytes <= 40; bytes++) {
    for (const size of [none, 0x01, 0x80]) {
      const film = new Uint8Array(bytes);
      film.set([0x1f, 0x43, 0xb6, 0x75, size].slice(0, bytes));
      const content = 4 + Math.clz32(size) - 23;
      const head = [checksum, 0, 0, 0, 0, 0, timestamp, longest];
      for (const [at, byte] of head.entries()) if (content + at < bytes) film[content + at] = byte;
      equal(await clockFalls(folder.file("film.mkv", film), "matroska,webm", 0), false, `${bytes} ${size}`);
    }
  }
});
