/** The expected "no" of a WHIP route: a bare status with a few plain words. Interface part 7. */

export type LiveStatus = 400 | 403 | 404 | 409 | 412 | 415 | 422 | 500 | 503;

export class LiveRefused extends Error {
  override readonly name = "LiveRefused";

  constructor(readonly status: LiveStatus, message: string) {
    super(message);
  }
}
