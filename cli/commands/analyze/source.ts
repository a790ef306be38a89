/** What `analyze` analyzes. */

export interface AnalyzedSource {
  readonly source_uri: string;
  readonly title: string;
  /** Its path, where it was uploaded from this machine. */
  readonly file: string | undefined;
}
