/** What a benchmark watches of a service while it works: how long others wait, and its memory. */

/**
 * Asks for health from a Worker, so that this process adds no wait: one request after the other, or one each
 * `everyMs` whether the last was answered or not. Stopping it gives the waits.
 */
export function startPulse(serviceUrl: string, everyMs?: number): { stop(): Promise<number[]> } {
  const source = `
    const waits = [], asked = new Set();
    let isStopped = false;
    onmessage = () => { isStopped = true; };
    const ask = async () => {
      const start = performance.now();
      await (await fetch("${serviceUrl}/v1/health")).body.cancel();
      waits.push(performance.now() - start);
    };
    let next = performance.now();
    while (!isStopped) {
      const asking = ask();
      if (${everyMs === undefined}) await asking;
      else asked.add(asking.finally(() => asked.delete(asking)));
      next = Math.max(next + ${everyMs ?? 1}, performance.now() + 1);
      await new Promise((resolve) => setTimeout(resolve, Math.max(0, next - performance.now())));
    }
    await Promise.all(asked);
    postMessage(waits);
  `;
  const url = URL.createObjectURL(new Blob([source], { type: "application/javascript" }));
  const worker = new Worker(url, { type: "module" });
  return {
    stop: () =>
      new Promise((resolve) => {
        worker.onmessage = ({ data }) => {
          worker.terminate();
          resolve(data);
        };
        worker.postMessage("stop");
      }),
  };
}

/** Lets the peak of a process's memory count from now on. */
export function resetPeak(pid: number): void {
  Deno.writeTextFileSync(`/proc/${pid}/clear_refs`, "5");
}

/** A size in /proc/<pid>/status, such as `VmRSS`, or its peak, `VmHWM`. */
export function statusBytes(pid: number, field: string): number {
  const text = Deno.readTextFileSync(`/proc/${pid}/status`);
  return Number(new RegExp(`^${field}:\\s+(\\d+) kB`, "m").exec(text)![1]) * 1024;
}
