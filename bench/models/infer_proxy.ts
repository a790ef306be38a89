/** What infer.ts compares the service with: a proxy of `node:http` that passes every request on to the given
 * URL.
 */

import { Agent, createServer, request as open } from "node:http";
import type { AddressInfo } from "node:net";

const { hostname, port } = new URL(Deno.args[0]!);
const agent = new Agent({ keepAlive: true });

const server = createServer((request, response) => {
  const { method, url: path, headers } = request;
  const passed = open({ agent, hostname, port, method, path, headers }, (answer) => {
    response.writeHead(answer.statusCode!, answer.headers);
    answer.pipe(response);
  });
  request.pipe(passed);
});
server.listen(0, "127.0.0.1", () => {
  console.log(`listening on http://127.0.0.1:${(server.address() as AddressInfo).port}`);
});
