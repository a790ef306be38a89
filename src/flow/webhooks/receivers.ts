/** Where the deliveries of a webhook go, and with which key they are signed. */

import { createHmac } from "node:crypto";
import type { SourceWebhook } from "../../model/webhooks/source_webhook.ts";
import type { SendFault, WebhookSender } from "../../remote/webhook_sender.ts";

/** Posts one body to the receiver of a webhook; `WebhookSender` is one. */
export interface Sender {
  post(headers: Readonly<Record<string, string>>, body: Uint8Array, signal: AbortSignal): Promise<SendFault>;
}

export interface HookReceiver extends Sender {
  /** 32 bytes that sign its deliveries. */
  readonly key: Uint8Array;
  /**
   * Another text where the file of sources has another address or secret for it; null for one that cannot
   * change.
   */
  readonly mark: string | null;
}

export function receiverOf(sender: Sender, key: Uint8Array): HookReceiver {
  return { key, mark: null, post: (headers, body, signal) => sender.post(headers, body, signal) };
}

/**
 * The receiver of a webhook of the file of sources: that of the file as it is now, so that an address or a
 * secret that was changed holds for what waits, too. One that is no longer in the file is sent what it still
 * has to be sent.
 */
export class SourceReceiver implements HookReceiver {
  readonly #find: () => SourceWebhook | null;
  readonly #open: (url: string) => WebhookSender;
  #known: { readonly webhook: SourceWebhook; readonly sender: WebhookSender };

  /** Null where the file has no such webhook. */
  static of(find: () => SourceWebhook | null, open: (url: string) => WebhookSender): SourceReceiver | null {
    const webhook = find();
    return webhook && new SourceReceiver(find, open, webhook);
  }

  private constructor(
    find: () => SourceWebhook | null,
    open: (url: string) => WebhookSender,
    webhook: SourceWebhook,
  ) {
    this.#find = find;
    this.#open = open;
    this.#known = { webhook, sender: open(webhook.url) };
  }

  get isInFile(): boolean {
    return this.#find() !== null;
  }

  get key(): Uint8Array {
    return Uint8Array.fromHex(this.#current().webhook.secret);
  }

  /**
   * What the log calls the receiver by: it does not tell the address, which may have a secret in its path.
   */
  get mark(): string {
    return createHmac("sha256", this.key).update(this.#current().webhook.url).digest("hex").slice(0, 16);
  }

  post(headers: Readonly<Record<string, string>>, body: Uint8Array, signal: AbortSignal): Promise<SendFault> {
    return this.#current().sender.post(headers, body, signal);
  }

  #current() {
    const { webhook, sender } = this.#known;
    const now = this.#find() ?? webhook;
    if (now !== webhook) {
      this.#known = { webhook: now, sender: now.url === webhook.url ? sender : this.#open(now.url) };
    }
    return this.#known;
  }
}
