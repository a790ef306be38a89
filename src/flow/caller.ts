/** The caller of a use case: its identity and its request. */

export interface Caller {
  /** `public` in open mode, else `api-key:<sha256>`. Runs and uploads belong to a principal. */
  readonly principalKey: string;
  /** The x-tenant-id header: only metadata, never used for authorization. */
  readonly tenantId: string | null;
  readonly requestId: string;
  /** Aborts when the client disconnects. */
  readonly signal: AbortSignal;
}
