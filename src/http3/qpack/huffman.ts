/** Decodes the Huffman code of QPACK and HPACK (RFC 7541, appendix B). */

import { ConnectionFault } from "../wire/faults.ts";

/**
 * How many bits the code of each byte has, and last that of the end of a text. That is enough to know the
 * codes: among those of one length they count up in the order of the bytes, and a longer one goes on where
 * the shorter ones end.
 */
const CODE_LENGTHS: readonly number[] = [
  ...[
    13,
    23,
    28,
    28,
    28,
    28,
    28,
    28,
    28,
    24,
    30,
    28,
    28,
    30,
    28,
    28,
    28,
    28,
    28,
    28,
    28,
    28,
    30,
    28,
    28,
    28,
    28,
    28,
    28,
    28,
    28,
    28,
  ],
  ...[
    6,
    10,
    10,
    12,
    13,
    6,
    8,
    11,
    10,
    10,
    8,
    11,
    8,
    6,
    6,
    6,
    5,
    5,
    5,
    6,
    6,
    6,
    6,
    6,
    6,
    6,
    7,
    8,
    15,
    6,
    12,
    10,
  ],
  ...[13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6],
  ...[15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28],
  ...[
    20,
    22,
    20,
    20,
    22,
    22,
    22,
    23,
    22,
    23,
    23,
    23,
    23,
    23,
    24,
    23,
    24,
    24,
    22,
    23,
    24,
    23,
    23,
    23,
    23,
    21,
    22,
    23,
    22,
    23,
    23,
    24,
  ],
  ...[
    22,
    21,
    20,
    22,
    22,
    23,
    23,
    21,
    23,
    22,
    22,
    24,
    21,
    22,
    23,
    23,
    21,
    21,
    22,
    21,
    23,
    22,
    23,
    23,
    20,
    22,
    22,
    22,
    23,
    22,
    22,
    23,
  ],
  ...[
    26,
    26,
    20,
    19,
    22,
    23,
    22,
    25,
    26,
    26,
    26,
    27,
    27,
    26,
    24,
    25,
    19,
    21,
    26,
    27,
    27,
    26,
    27,
    24,
    21,
    21,
    26,
    26,
    28,
    27,
    27,
    27,
  ],
  ...[
    20,
    24,
    20,
    21,
    22,
    21,
    21,
    23,
    22,
    22,
    25,
    25,
    24,
    24,
    26,
    23,
    26,
    27,
    26,
    26,
    27,
    27,
    27,
    27,
    27,
    28,
    27,
    27,
    27,
    27,
    27,
    26,
  ],
  ...[30],
];
const END = CODE_LENGTHS.length - 1;

/**
 * The codes as a tree: node n has its two children at 2n and 2n + 1, 0 for none, a node as its number and a
 * byte b as -b - 1.
 */
const TREE = treeOf(CODE_LENGTHS);

/** The text, a character a byte. After the last code there are fewer than eight bits, all of them ones. */
export function decodeHuffman(bytes: Uint8Array): string {
  let text = "";
  let node = 0;
  let depth = 0;
  let isPadding = true;
  for (const byte of bytes) {
    for (let shift = 7; shift >= 0; shift--) {
      const bit = (byte >> shift) & 1;
      const next = TREE[2 * node + bit]!;
      depth++;
      isPadding &&= bit === 1;
      if (next >= 0) {
        node = next;
        continue;
      }
      const symbol = -next - 1;
      if (symbol === END) throw faulty();
      text += String.fromCharCode(symbol);
      node = 0;
      depth = 0;
      isPadding = true;
    }
  }
  if (depth >= 8 || !isPadding) throw faulty();
  return text;
}

function treeOf(lengths: readonly number[]): Int16Array {
  const symbols = lengths.map((_, symbol) => symbol).sort((a, b) => lengths[a]! - lengths[b]! || a - b);
  const tree = new Int16Array(2 * lengths.length);
  let nodes = 1;
  let code = 0;
  let length = 0;
  for (const symbol of symbols) {
    code *= 2 ** (lengths[symbol]! - length);
    length = lengths[symbol]!;
    let node = 0;
    for (let bit = length - 1; bit > 0; bit--) {
      const child = 2 * node + ((code >> bit) & 1);
      if (tree[child] === 0) tree[child] = nodes++;
      node = tree[child]!;
    }
    tree[2 * node + (code & 1)] = -symbol - 1;
    code++;
  }
  return tree;
}

function faulty(): ConnectionFault {
  return new ConnectionFault("QPACK_DECOMPRESSION_FAILED", "a text is not in the Huffman code");
}
