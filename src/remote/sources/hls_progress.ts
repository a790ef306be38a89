/** How far an HLS source was read: where it is opened again, nothing of it comes a second time. */

/** A part as a playlist lists it. */
export interface PlaylistPart {
  /** The address of the playlist. */
  readonly list: string;
  /** The media sequence number of the part. */
  readonly sequence: number;
  /** The address of the part without the query, which may be another one each time. */
  readonly address: string;
}

/** Lists that were read; a source with many variants is read through few of them. */
const LISTS_MAX = 16;

export class HlsProgress {
  readonly #last = new Map<string, PlaylistPart>();

  /** The progress of a source that was read up to these parts. */
  static of(parts: readonly PlaylistPart[]): HlsProgress {
    const progress = new HlsProgress();
    for (const part of parts) progress.note(part);
    return progress;
  }

  /** The parts that were read last, one of each playlist. */
  get parts(): readonly PlaylistPart[] {
    return [...this.#last.values()];
  }

  /** The addresses of the playlists. */
  get lists(): readonly string[] {
    return [...this.#last.keys()];
  }

  note(part: PlaylistPart): void {
    if (this.#last.has(part.list) || this.#last.size < LISTS_MAX) this.#last.set(part.list, part);
  }

  /** Whether the part is the one that was read last of its playlist. */
  isLast({ list, sequence, address }: PlaylistPart): boolean {
    const last = this.#last.get(list);
    return last !== undefined && last.sequence === sequence && last.address === address;
  }
}
