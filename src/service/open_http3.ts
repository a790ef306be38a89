/** Opens the HTTP/3 listener; loaded where the configuration asks for one. */

import { Http3Listener, type ListenerOptions } from "../http3/listener.ts";
import { authorityOf, notFree } from "./addresses.ts";

/** Opens the listener. Errors: the address cannot be listened on; the message names it and its setting. */
export function openHttp3(options: ListenerOptions): Http3Listener {
  try {
    const listener = new Http3Listener(options);
    const { hostname } = options.address;
    const address = authorityOf({ hostname, port: listener.port });
    options.world.log.info(`listening for HTTP/3 on https://${address}`);
    return listener;
  } catch (error) {
    throw notFree("SERVICE_H3_BIND_ADDR", options.address, error);
  }
}
