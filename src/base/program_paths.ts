/** Where the service may read and write, and which programs it may start: settled before it is confined. */

/** Absolute paths of the programs that the service may start; null where the machine lacks an optional one. */
export interface Tools {
  readonly ffmpeg: string;
  readonly ffprobe: string;
  /** Makes the named pipe through which frames arrive. */
  readonly mkfifo: string;
  /** Limits a program's CPU time and memory; absent outside Linux. */
  readonly prlimit: string | null;
}

/** Real paths of existing directories. */
export interface Places {
  readonly dataDir: string;
  readonly uploadRoot: string;
  /** For named pipes and files that live as long as one request. */
  readonly tempDir: string;
  readonly operatorRoots: readonly string[];
  /** The service's own code and kernels. */
  readonly codeDirs: readonly string[];
}
