/** The deadline of tests that take more than ten seconds on two quiet processors; others have that of
 * preload.ts.
 */
export const LONG_TEST = { timeout: 400_000 } as const;
