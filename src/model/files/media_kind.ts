/** The kinds of stored media that retention limits one by one. See docs/retention.md#media. */

/** A kind of blobs, by what it is for a person. */
export const MEDIA_KINDS = ["picture", "clip", "sound"] as const;
export type MediaKind = typeof MEDIA_KINDS[number];

const KIND_OF = new Map<string, MediaKind>([
  ["image/jpeg", "picture"],
  ["video/mp4", "clip"],
  ["audio/wav", "sound"],
]);

/** The kind of a media type; undefined for one that no blob has. */
export function mediaKindOf(mediaType: string): MediaKind | undefined {
  return KIND_OF.get(mediaType);
}

/** The last event of each kind whose media were removed; 0 where none were. */
export type RemovedMedia = Readonly<Record<MediaKind, number>>;

/** The value of a run that has lost no media. */
export const NONE_REMOVED: RemovedMedia = { picture: 0, clip: 0, sound: 0 };

/** Whether the media of this type that the event names were removed from its run. */
export function isMediaRemoved(removed: RemovedMedia, mediaType: string, seq: number): boolean {
  const kind = mediaKindOf(mediaType);
  return kind !== undefined && seq <= removed[kind];
}

/** Adds what the payload of a `media_removed` says, which may have any shape, as it is read from a log. */
export function withRemoved(removed: RemovedMedia, payload: unknown): RemovedMedia {
  const { media, through_seq: throughSeq } = (payload ?? {}) as { media?: unknown; through_seq?: unknown };
  const kind = MEDIA_KINDS.find((known) => known === media);
  if (kind === undefined || !Number.isSafeInteger(throughSeq)) return removed;
  return { ...removed, [kind]: Math.max(removed[kind], throughSeq as number) };
}
