/** The sources that the operator's file names, and who may use them. */

import type { NamedSource } from "../../model/sources/source_file.ts";
import type { SourceWebhook } from "../../model/webhooks/source_webhook.ts";
import type { WebhookOfSource } from "../../model/webhooks/webhook.ts";

export class NamedSources {
  #sources: readonly NamedSource[];

  constructor(sources: readonly NamedSource[]) {
    this.#sources = sources;
  }

  /** In the order of the file. */
  get all(): readonly NamedSource[] {
    return this.#sources;
  }

  /** Null for an unknown name, and for a source that the principal may not use, alike. */
  find(name: string, principalKey: string): NamedSource | null {
    return this.ofPrincipal(principalKey).find((source) => source.name === name) ?? null;
  }

  /** The sources that the principal may use. */
  ofPrincipal(principalKey: string): readonly NamedSource[] {
    return this.#sources.filter(({ principals }) => principals === null || principals.includes(principalKey));
  }

  /** A webhook of a source as the file has it now; null where it has none of that name. */
  webhook({ name, webhook }: WebhookOfSource): SourceWebhook | null {
    const source = this.#sources.find((source) => source.name === name);
    return source?.watch?.webhooks.find((each) => each.name === webhook) ?? null;
  }

  /** The file was read again. */
  replace(sources: readonly NamedSource[]): void {
    this.#sources = sources;
  }
}
