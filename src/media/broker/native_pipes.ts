/** Named pipes made by the C library: without a program for each, and wider than a pipe is by itself. */

import { cText } from "../../base/bytes.ts";

/** Linux's numbers of `O_RDWR`, `O_NONBLOCK`, `O_NOFOLLOW` and `O_CLOEXEC`. */
const OPENING = 2 | 0o4000 | linuxNoFollow() | 0o2000000;
/** Linux's number of `F_SETPIPE_SZ`. */
const SET_PIPE_SIZE = 1031;
/** Mode of a pipe: only this user may open it. */
const MODE = 0o600;

/** Calls of the C library for pipes. May be disposed more than once. */
export interface NativePipes extends Disposable {
  /** Makes a pipe. Throws where that is not possible, as where something is at the path already. */
  make(path: string): void;
  /**
   * Lets a pipe that somebody has open hold `bytes` for as long as it is open. Where the system does not
   * allow it, as it bounds the pages of all pipes of a user, the pipe stays as it is.
   */
  widen(path: string, bytes: number): void;
}

/** The calls for pipes; null where native code may not be used, or is not that of Linux with glibc. */
export function openNativePipes(): NativePipes | null {
  if (Deno.build.os !== "linux" || Deno.permissions.querySync({ name: "ffi" }).state !== "granted") {
    return null;
  }
  try {
    const libc = Deno.dlopen("libc.so.6", {
      mkfifo: { parameters: ["buffer", "u32"], result: "i32" },
      open: { parameters: ["buffer", "i32"], result: "i32" },
      fcntl: { parameters: ["i32", "i32", "i32"], result: "i32" },
      close: { parameters: ["i32"], result: "i32" },
    });
    const { mkfifo, open, fcntl, close } = libc.symbols;
    let isOpen = true;
    return {
      make: (path) => {
        if (mkfifo(cText(path), MODE) !== 0) throw new Error("Cannot make a named pipe");
      },
      widen: (path, bytes) => {
        const descriptor = open(cText(path), OPENING);
        if (descriptor < 0) return;
        fcntl(descriptor, SET_PIPE_SIZE, bytes);
        close(descriptor);
      },
      [Symbol.dispose]: () => {
        if (isOpen) libc.close();
        isOpen = false;
      },
    };
  } catch {
    return null; // another C library
  }
}

/** Linux's number of `O_NOFOLLOW`, which is another one on ARM. */
function linuxNoFollow(): number {
  return Deno.build.arch === "aarch64" ? 0o100000 : 0o400000;
}
