/** Who listens to which notification channel of a database. */

const channelPattern = /^[a-z][a-z0-9_]{0,62}$/

/** A channel's name becomes part of a statement, so nothing but a plain identifier is let through. */
export function checkChannel(channel: string): void {
  if (!channelPattern.test(channel)) {
    throw new Error(
      `Cannot listen on ${JSON.stringify(channel)}: a channel is a lower-case identifier of at most 63 letters`,
    )
  }
}

export class ListenerSet {
  readonly #byChannel = new Map<string, Set<(payload: string) => void>>()

  get channels(): string[] {
    return [...this.#byChannel.keys()]
  }

  /** Returns whether this is the first listener of the channel. */
  add(channel: string, listener: (payload: string) => void): boolean {
    const known = this.#byChannel.get(channel)
    if (known === undefined) this.#byChannel.set(channel, new Set([listener]))
    else known.add(listener)
    return known === undefined
  }

  /** Returns whether this was the last listener of the channel. */
  remove(channel: string, listener: (payload: string) => void): boolean {
    const known = this.#byChannel.get(channel)
    if (known === undefined || !known.delete(listener) || known.size > 0) return false
    return this.#byChannel.delete(channel)
  }

  deliver(channel: string, payload: string): void {
    for (const listener of this.#byChannel.get(channel) ?? []) listener(payload)
  }
}
