/** The video of a live session as a stream, for Media Source Extensions, a player that reads a pipe, or a
 * file.
 */

import type { Connection, RequestOptions } from "./http/connection.ts";

export interface LiveVideo {
  /** For `MediaSource.addSourceBuffer`: `video/mp4; codecs="avc1.42e01f, opus"`. */
  readonly mediaType: string;
  /**
   * A fragmented MP4: its first part, then fragments from a key frame on, with the times of the run's events.
   * It ends with the session, and where the codec or the size changes. Cancel it when it is not watched any
   * more.
   */
  readonly stream: ReadableStream<Uint8Array>;
}

export async function openLiveVideo(
  connection: Connection,
  path: string,
  options?: RequestOptions,
): Promise<LiveVideo> {
  const call = { method: "GET", path, headers: { accept: "video/mp4" } } as const;
  const response = await connection.begun(call, options);
  const mediaType = response.headers.get("content-type") ?? "";
  return { mediaType, stream: response.body! };
}
