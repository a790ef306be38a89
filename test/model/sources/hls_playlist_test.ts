import assert from "node:assert/strict";
import { isPlaylist, PlaylistRefused, withUris } from "../../../src/model/sources/hls_playlist.ts";

const BASE = new URL("https://media.test/live/a.m3u8?token=1");

Deno.test("every address of a playlist is resolved and replaced, and nothing else changes", () => {
  const check = (line: string, expected: string) => {
    const playlist = `#EXTM3U\n${line}\n#EXT-X-ENDLIST\n`;
    const rewritten = withUris(playlist, BASE, ({ href }) => `<${href}>`);
    assert.equal(rewritten, `#EXTM3U\n${expected}\n#EXT-X-ENDLIST\n`, line);
  };
  const at = "https://media.test";
  check("s1.ts", `<${at}/live/s1.ts>`);
  check("  s1.ts\t", `<${at}/live/s1.ts>`);
  check("/s1.ts?a=b", `<${at}/s1.ts?a=b>`);
  check("../s1.ts", `<${at}/s1.ts>`);
  check("//10.0.0.1/s1.ts", "<https://10.0.0.1/s1.ts>");
  check("http://10.0.0.1/s1.ts", "<http://10.0.0.1/s1.ts>");
  check("file:///etc/passwd", "<file:///etc/passwd>");
  check("s1.ts\r\ns2.ts\rs3.ts", `<${at}/live/s1.ts>\n<${at}/live/s2.ts>\n<${at}/live/s3.ts>`);
  check(" #EXTINF:1,", `<${at}/live/a.m3u8?token=1#EXTINF:1,>`);
  check("", "");
  check("#", "#");
  check("# a comment with s1.ts", "# a comment with s1.ts");
  check("#EXTINF:4.0,title, with commas", "#EXTINF:4.0,title, with commas");
  check("#EXT-X-BYTERANGE:1000@0", "#EXT-X-BYTERANGE:1000@0");
  check('#EXT-X-MAP:URI="i.mp4",BYTERANGE="8@0"', `#EXT-X-MAP:URI="<${at}/live/i.mp4>",BYTERANGE="8@0"`);
  check('#EXT-X-MAP:BYTERANGE="8@0",URI="i.mp4"', `#EXT-X-MAP:BYTERANGE="8@0",URI="<${at}/live/i.mp4>"`);
  check('#EXT-X-KEY:METHOD=AES-128,URI="/k"', `#EXT-X-KEY:METHOD=AES-128,URI="<${at}/k>"`);
  check('#EXT-X-MEDIA:TYPE=AUDIO,URI="a/b.m3u8"', `#EXT-X-MEDIA:TYPE=AUDIO,URI="<${at}/live/a/b.m3u8>"`);
  check('#EXT-X-ANY:URI="a",URI="b"', `#EXT-X-ANY:URI="<${at}/live/a>",URI="<${at}/live/b>"`);
  assert.equal(withUris("\ufeff#EXTM3U\ns.ts", BASE, ({ pathname }) => pathname), "#EXTM3U\n/live/s.ts");
});

Deno.test("a playlist that could hide an address is refused", () => {
  const check = (line: string, expected: RegExp) => {
    const rewriting = () => withUris(`#EXTM3U\n${line}\n`, BASE, () => "replaced");
    assert.throws(
      rewriting,
      (error) => error instanceof PlaylistRefused && expected.test(error.message),
      line,
    );
  };
  check("#EXT-X-MAP:URI=i.mp4", /oddly/);
  check("#EXT-X-MAP:URI='i.mp4'", /oddly/);
  check('#EXT-X-MAP:URI = "i.mp4"', /oddly/);
  check('#EXT-X-MAP:uri="i.mp4"', /oddly/);
  check('#EXT-X-MAP:URI="i.mp4', /oddly/);
  check('#EXT-X-MAP:URI="i\\".mp4"', /oddly/);
  check('#EXT-X-MAP:X-URI="i.mp4"', /oddly/);
  check('#EXT-X-MAP:URI="a",URI=http://10.0.0.1/', /oddly/);
  check("s1.ts\0#EXTINF", /control/);
  check("#EXT-X-KEY:\x01", /control/);
  check("https://[::1", /no address/);
  check('#EXT-X-MAP:URI="https://[::1"', /no address/);
});

Deno.test("the beginning of a body decides whether it is a playlist", () => {
  const check = (text: string, expected: boolean) => {
    assert.equal(isPlaylist(new TextEncoder().encode(text)), expected, JSON.stringify(text));
  };
  for (const text of ["#EXTM3U", "#extm3u\n", " \r\n\t#EXTM3U", "\ufeff#EXTM3U", "#EXTM3U8"]) {
    check(text, true);
  }
  for (const text of ["", "#EXTM3", "x#EXTM3U", "#EXT-X-MAP", "G@\0#EXTM3U"]) check(text, false);
});
