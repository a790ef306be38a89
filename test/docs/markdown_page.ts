/** A Markdown page as links see it: which anchors its headings have, and where its own links lead. */

export interface Link {
  readonly line: number;
  /** Target of the link as it stands in the page. */
  readonly target: string;
}

export interface Page {
  readonly anchors: ReadonlySet<string>;
  readonly links: readonly Link[];
}

/** Headings and links outside of code. */
export function readPage(text: string): Page {
  const anchors = new Set<string>();
  const links: Link[] = [];
  let fence: string | undefined;
  text.split("\n").forEach((line, index) => {
    const mark = /^ {0,3}(```+|~~~+)/.exec(line)?.[1];
    if (mark && (fence === undefined || line.trim() === fence)) {
      fence = fence === undefined ? mark : undefined;
    } else if (fence === undefined) {
      const heading = /^#{1,6} +(.*?) *#*$/.exec(line)?.[1];
      if (heading) anchors.add(freeAnchor(slugOf(heading), anchors));
      for (const [, target] of withoutCode(line).matchAll(/\]\(<?([^)\s>]+)>?(?: "[^"]*")?\)/g)) {
        links.push({ line: index + 1, target: target! });
      }
    }
  });
  return { anchors, links };
}

/** The anchor that GitHub gives a heading: lower case, without punctuation, hyphens for spaces. */
export function slugOf(heading: string): string {
  const text = heading.replaceAll(/!?\[([^\]]*)\]\([^)]*\)/g, "$1").replaceAll(/[`*]/g, "");
  return text.trim().toLowerCase().replaceAll(/[^\p{L}\p{N}\p{M}_\- ]/gu, "").replaceAll(" ", "-");
}

/** The second heading of the same text ends in `-1`. */
function freeAnchor(slug: string, taken: ReadonlySet<string>): string {
  if (!taken.has(slug)) return slug;
  let number = 1;
  while (taken.has(`${slug}-${number}`)) number++;
  return `${slug}-${number}`;
}

function withoutCode(line: string): string {
  return line.replaceAll(/`[^`]*`/g, "");
}
