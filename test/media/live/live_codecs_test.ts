import { join } from "node:path";
import { localRunner } from "../../support/local_runner.ts";
import { deepEqual, equal, ok } from "node:assert/strict";
import { LiveCodecs, liveCodecs } from "../../../src/media/live/live_codecs.ts";
import { TempFolder, tools, world } from "../../support/media.ts";

async function check(lines: string, expected: readonly string[]) {
  using folder = new TempFolder();
  const ffmpeg = folder.script("ffmpeg", lines);
  deepEqual(await liveCodecs({ runner: localRunner({ ...tools(), ffmpeg }), world: world() }), expected);
}

Deno.test("decoders that run on the processor alone count, each codec once", async () => {
  await check("echo ' VFS..D hevc   HEVC'; echo ' V....D av1   AV1'; echo ' VFS..D h264  H.264'", ["h265"]);
  await check(
    "echo ' V..... libdav1d  AV1'; echo ' V....D libaom-av1  AV1'; echo ' VFS..D vp9  VP9'; echo ' A....D opus  Opus'",
    ["av1", "vp9"],
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
  const ffmpeg = folder.script(
    "ffmpeg",
    `mkdir ${asked}/$$; [ $(ls ${asked} | wc -l) -gt 1 ] || exit 1; echo ' VFS..D hevc   HEVC'`,
  );
  const codecs = new LiveCodecs({ runner: localRunner({ ...tools(), ffmpeg }), world: world() });
  deepEqual(await Promise.all([codecs.list(), codecs.list()]), [[], []]);
  deepEqual(await Promise.all([codecs.list(), codecs.list()]), [["h265"], ["h265"]]);
  deepEqual(await codecs.list(), ["h265"]);
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
  const found = await liveCodecs({ runner: localRunner(tools()), world: world() });
  deepEqual(found.toSorted(), expected.toSorted());
});
