/** The address of a picture that is replaced again and again: the last one stays until the next one can be shown. */

import { useRef } from "preact/hooks";
import { useMedia } from "./media.ts";

/** As `useMedia`; undefined only before the first picture. */
export function useSteadyMedia(path: string | null): string | undefined {
  const { url } = useMedia(path);
  const last = useRef<string | undefined>(undefined);
  if (url !== undefined) last.current = url;
  return last.current;
}
