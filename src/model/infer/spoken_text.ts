/** What a model says to whoever asked: its text without its thinking and without the tokens of its chat
 * format.
 */

import { jsonSizeFault } from "../json_size.ts";

/**
 * The text without thinking and without tokens of the format. Takes time linear in its length. See
 * docs/models.md#words-of-a-model.
 */
export function spokenText(text: string): string {
  const whole = text.toWellFormed();
  if (isJson(whole)) return whole; // a text within the JSON may name such a mark
  return withoutTokens(withoutThinking(finalChannel(afterThoughtInWords(whole))));
}

/** The text behind thinking in words: Granite says in words where its thinking begins and ends. */
function afterThoughtInWords(text: string): string {
  if (!/^\s*Here(?:'s| is) my thought process:/i.test(text)) return text;
  return /\bHere(?:'s| is) my response:(.*)$/is.exec(text)?.[1] ?? "";
}

function isJson(text: string): boolean {
  if (!/^\s*[{["]/.test(text) || jsonSizeFault(text) !== null) return false;
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** The message of the last channel that is not thinking, where a text has channels (gpt-oss). */
function finalChannel(text: string): string {
  const parts = text.split(CHANNEL);
  if (parts.length === 1) return /^\s*(?:analysis|commentary)/.test(text) ? afterBareFinal(text) : text;
  const last = parts.findLast((part, index) => index > 0 && !/^\s*analysis\b/.test(part));
  return last === undefined
    ? ""
    : last.slice(last.indexOf(MESSAGE) + MESSAGE.length).split(END_OF_MESSAGE)[0]!;
}

const MESSAGE = "<|message|>";
const CHANNEL = /<\|channel\|>(?=[^<]{0,200}(?:<\|constrain\|>[^<]{0,100})?<\|message\|>)/;
const END_OF_MESSAGE = /<\|(?:end|return|call)\|>/;

/**
 * The text behind the bare name of the last channel: some servers take the tokens away, and leave the names
 * of the channels.
 */
function afterBareFinal(text: string): string {
  const at = text.lastIndexOf(BARE_FINAL);
  return at < 0 ? text : text.slice(at + BARE_FINAL.length);
}

const BARE_FINAL = "assistantfinal";

/** The beginning and the end of each form of thinking, beside tags such as `<think>`. */
const FORMS = [
  ["[think]", "[/think]"],
  ["◁think▷", "◁/think▷"],
  ["<|start_thinking|>", "<|end_thinking|>"],
  ["<|begin_of_thought|>", "<|end_of_thought|>"],
  ["<|inner_prefix|>", "<|inner_suffix|>"],
  ["<|channel>thought", "<channel|>"],
  ["<unused94>", "<unused95>"],
] as const;

const TAG =
  /<\/?(?:[\w-]{1,20}:)?(?:think|thinking|(?:long_)?thoughts?|reason|reasoning|reflection|(?:internal_|inner_)?monologue|scratchpad)(?:\s[^<>]{0,200})?>/;

const MARK = new RegExp(
  [TAG.source, ...FORMS.flat().map((mark) => mark.replaceAll(/[[\]|]/g, "\\$&"))].join("|"),
  "gi",
);

/**
 * The text without thinking. A form of thinking ends with its own mark only. What stands before an end
 * without a beginning is thinking too, and so is all that follows a beginning without an end: the model was
 * stopped while it thought. Many servers leave out the beginning, as it is part of their prompt.
 */
function withoutThinking(text: string): string {
  let kept = "";
  let from = 0;
  let opened: string | null = null;
  for (const { 0: mark, index } of text.matchAll(MARK)) {
    const { kind, isEnd } = markOf(mark);
    if (opened === null) {
      kept = isEnd ? "" : kept + text.slice(from, index);
      opened = isEnd ? null : kind;
      from = index + mark.length;
    } else if (isEnd && kind === opened) {
      opened = null;
      from = index + mark.length;
    }
  }
  return opened === null ? kept + text.slice(from) : kept;
}

/** The kind of a mark: tags of one name, and the two marks of a form, have the same kind. */
function markOf(mark: string): { readonly kind: string; readonly isEnd: boolean } {
  const written = mark.toLowerCase();
  for (const [start, end] of FORMS) {
    if (written === start || written === end) return { kind: start, isEnd: written === end };
  }
  return { kind: /[^</>\s]+/.exec(written)![0], isEnd: written.startsWith("</") };
}

/** Marks after which the turn of the model is over; what follows is invented. */
const END_OF_TURN =
  /<\|(?:im_end|im_start|endoftext|end_of_text|eot_id|eom_id|eot|end|end_of_turn|END_OF_TURN_TOKEN|return)\|>|<(?:end_of_turn|eos|end_of_utterance)>|<｜end▁of▁sentence｜>/;
const TOKEN =
  /<\|[\w/ .:-]{1,40}\|>|<｜[^<>｜]{1,40}｜>|<(?:start_of_turn|bos|eos|pad|end_of_turn|end_of_utterance)>/g;

/** How the turn of the model begins. */
const ROLE =
  /^\s*(?:<\|im_start\|>assistant|<start_of_turn>model|<\|start_header_id\|>assistant<\|end_header_id\|>)\s*/;

function withoutTokens(text: string): string {
  const turn =
    text.replace(ROLE, "").split(END_OF_TURN).find((part) => part.replaceAll(TOKEN, "").trim() !== "") ?? "";
  const plain = turn.replaceAll(TOKEN, "").replace(/^\s*<s>/, "").replace(/<\/s>\s*$/, "");
  const said = ANSWER_TAGS.reduce((whole, tag) => {
    const start = whole.lastIndexOf(`<${tag}>`);
    const end = start < 0 ? -1 : whole.indexOf(`</${tag}>`, start);
    return end < 0 ? whole : whole.slice(start + tag.length + 2, end);
  }, plain);
  return said === text ? text : said.trim();
}

const ANSWER_TAGS = ["answer", "response"];
