/** Codecs of live sessions, as the machine's ffmpeg can decode them. */

import { join } from "node:path";
import { deepEqual, equal, ok } from "node:assert/strict";
import { AboutFfmpeg } from "../../../src/media/trials/ffmpeg_facts.ts";
import { LiveCodecs } from "../../../src/media/live/live_codecs.ts";
import { localRunner } from "../../support/local_runner.ts";
import { TempFolder, tools, world } from "../../support/media.ts";

function about(ffmpeg: string): AboutFfmpeg {
  return new AboutFfmpeg({ runner: localRunner({ ...tools(), ffmpeg }), world: world() });
}

async function check(lines: string, expected: readonly string[]) {
  using folder = new TempFolder();
  deepEqual(await new LiveCodecs(about(folder.script("ffmpeg", lines))).list(), expected);
}

Deno.test("decoders that run on the processor alone count, each codec once", async () => {
  await check("echo ' VFS..D hevc   HEVC'; echo ' V....D av1   AV1'; echo ' VFS..D h264  H.264'", ["h265"]);
  await check(
    "echo ' V..... libdav1d  AV1'; echo ' V....D libaom-av1  AV1'; echo ' VFS..D vp9  VP9'; echo ' A....D opus  Opus'",
    ["vp9", "av1"],
  );
});

Deno.test("an ffmpeg that does not list its decoders adds no codec", async () => {
  await check("exit 1", []);
  await check("echo nonsense", []);
});

Deno.test("ffmpeg is asked once, and again only where it gave no answer", async () => {
  using folder = new TempFolder();
  const asked = join(folder.path, "asked"); // a folder, as a program may not write files
  Deno.mkdirSync(asked);
  const ffmpeg = about(folder.script(
    "ffmpeg",
    `mkdir ${asked}/$$; [ $(ls ${asked} | wc -l) -gt 1 ] || exit 1; echo 'ffmpeg version 9.9-x' >&2; echo ' VFS..D hevc   HEVC'`,
  ));
  const facts = { version: "9.9-x", codecs: ["hevc"] };
  deepEqual(await Promise.all([ffmpeg.facts(), ffmpeg.facts()]), [null, null]);
  deepEqual(await Promise.all([ffmpeg.facts(), ffmpeg.facts()]), [facts, facts]);
  deepEqual(await ffmpeg.facts(), facts);
  equal([...Deno.readDirSync(asked)].length, 2);
});

/** Whether the machine's ffmpeg has the decoder, according to its help. */
function hasDecoder(name: string): boolean {
  const args = ["-v", "quiet", "-h", `decoder=${name}`];
  const { stdout } = new Deno.Command(tools().ffmpeg, { args, stderr: "null" }).outputSync();
  return new TextDecoder().decode(stdout).startsWith(`Decoder ${name} `);
}

Deno.test("the machine's own ffmpeg can be asked", async () => {
  const decoders = {
    h265: ["hevc"],
    vp9: ["vp9", "libvpx-vp9"],
    av1: ["libdav1d", "libaom-av1", "libgav1"],
  };
  const expected = Object.entries(decoders).filter(([, names]) => names.some(hasDecoder)).map(([codec]) =>
    codec
  );
  ok(expected.includes("vp9"), "a decoder that every build of ffmpeg has");
  const ffmpeg = about(tools().ffmpeg);
  deepEqual((await new LiveCodecs(ffmpeg).list()).toSorted(), expected.toSorted());
  const { version, codecs } = (await ffmpeg.facts())!;
  ok(version !== null && /\d/.test(version));
  deepEqual(["h264", "vp8", "aac", "opus"].filter((codec) => !codecs.includes(codec)), []);
});
