/** The caller of a use case: its identity and its request. */

export interface Caller {
  /**
   * `public` in open mode, else what {@link PrincipalNames} makes of the key. Runs and uploads belong to a
   * principal.
   */
  readonly principalKey: string;
  /** The x-tenant-id header: only metadata, never used for authorization. */
  readonly tenantId: string | null;
  readonly requestId: string;
  /** Whether it is on this machine, as far as the service knows. */
  readonly isOnLoopback: boolean;
  /** Aborts when the client disconnects. */
  readonly signal: AbortSignal;
  /**
   * Disposes `held` when the answer to the request has gone, or its client has: its memory is in use until
   * then.
   */
  holdUntilAnswered(held: Disposable): void;
}
