/** Who asks: the identity and the request that every story decides by. */

export interface Caller {
  /** `public` in open mode, else `api-key:<sha256>`; owns runs and uploads. */
  readonly principalKey: string;
  /** The x-tenant-id header: metadata only, never an authorization. */
  readonly tenantId: string | null;
  readonly requestId: string;
  /** Aborts when the caller hangs up. */
  readonly signal: AbortSignal;
}
