/**
 * The cameras of the benchmarks, in a process of their own so that their processor time is known: an RTSP
 * server that sends a 640x480 film at 30 fps in real time, from its start to every client. It says what
 * happens in lines of JSON.
 *
 *     deno run -A bench/live/camera_server.ts FILM [PORT]
 */

import { recordTrack } from "../../test/support/live/camera_tracks.ts";
import { serveRtsp } from "../../test/support/live/rtsp_server.ts";

const [film = "", port = "0"] = Deno.args;
const track = recordTrack(["-i", film, "-map", "0:v", "-c", "copy"], { seconds: 10 });
const server = serveRtsp(new Uint8Array(), {
  tracks: [track],
  port: Number(port),
  onPlay: () => console.log(JSON.stringify({ event: "playing", atMs: Date.now() })),
});
console.log(JSON.stringify({ event: "listening", port: server.port, atMs: Date.now() }));
