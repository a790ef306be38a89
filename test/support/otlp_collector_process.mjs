/** The process of otlp_collector.ts: a gRPC server for one method on Node's HTTP/2. Arguments: its port, the status of its answers. */

import { createServer } from "node:http2";

const [port, status] = process.argv.slice(2).map(Number);
const server = createServer();
server.on("stream", (stream, headers) => {
  const chunks = [];
  stream.on("error", () => {});
  stream.on("data", (chunk) => chunks.push(chunk));
  stream.on("end", () => {
    const isExport = headers[":path"] === "/opentelemetry.proto.collector.trace.v1.TraceService/Export";
    const isGrpc = headers["content-type"] === "application/grpc" && headers.te === "trailers";
    if (!isExport || !isGrpc || status !== 0) {
      // As servers of gRPC answer a call that fails: without a message, the status in a trailer.
      stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
      stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": String(status || 12) }));
      return stream.end();
    }
    const frame = Buffer.concat(chunks);
    if (frame[0] !== 0 || frame.readUInt32BE(1) !== frame.length - 5) throw new Error("no frame of gRPC");
    console.log(frame.subarray(5).toString("base64"));
    stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
    stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
    stream.end(Buffer.alloc(5));
  });
});
server.on("sessionError", () => {});
server.listen(port, "127.0.0.1", () => console.log(`port ${server.address().port}`));
