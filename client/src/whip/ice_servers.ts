/** The STUN and TURN servers of a `Link` header (RFC 9725, section 4.6). */

/** As RTCPeerConnection takes it. */
export interface IceServer {
  urls: string;
  username?: string;
  credential?: string;
}

/** Those links whose relation is `ice-server`. */
export function readIceServers(link: string | null): IceServer[] {
  const servers: IceServer[] = [];
  for (
    const [, urls, rest = ""] of (link ?? "").matchAll(
      /<([^>]*)>((?:\s*;\s*[\w-]+=(?:"(?:[^"\\]|\\.)*"|[^",;\s]+))*)/g,
    )
  ) {
    const parameters = new Map(
      Array.from(rest.matchAll(/([\w-]+)=(?:"((?:[^"\\]|\\.)*)"|([^",;\s]+))/g), ([, name, quoted, bare]) => [
        name!.toLowerCase(),
        quoted?.replace(/\\(.)/g, "$1") ?? bare!,
      ]),
    );
    if (parameters.get("rel") !== "ice-server") continue;
    const username = parameters.get("username");
    const credential = parameters.get("credential");
    servers.push({
      urls: urls!,
      ...(username !== undefined && { username }),
      ...(credential !== undefined && { credential }),
    });
  }
  return servers;
}
