/** What the command palette offers, and how a few typed letters choose among it. */
import type { IconName } from "../parts/icon.tsx"
import { t } from "../i18n/translate.ts"

export interface Command {
  readonly id: string
  readonly name: string
  readonly kind:
    | "Page"
    | "Action"
    | "API key"
    | "Person"
    | "Request"
    | "Organization"
    | "Model"
    | "Question set"
  readonly icon: IconName
  /** Shown behind the name, and searched. */
  readonly detail?: string
  /** Words under which it is also found. */
  readonly also?: string
  /** Only found by typing: there may be many of its kind. */
  readonly quiet?: true
  readonly run: () => void
}

export const kindNames: Readonly<Record<Command["kind"], string>> = {
  Page: t("Page"),
  Action: t("Action"),
  "API key": t("API key"),
  Person: t("Person"),
  Request: t("Request"),
  Organization: t("Organization"),
  Model: t("Model"),
  "Question set": t("Question set"),
}

const shownMax = 50

/** Every word must occur; a name that begins with the text comes first, then names, then other words. */
export function findCommands(commands: readonly Command[], text: string): readonly Command[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean)
  if (words.length === 0) return commands.filter(({ quiet }) => !quiet)
  return commands
    .map((command) => ({ command, rank: rankOf(command, words) }))
    .filter(({ rank }) => rank > 0)
    .toSorted((a, b) => b.rank - a.rank)
    .slice(0, shownMax)
    .map(({ command }) => command)
}

function rankOf({ name, detail = "", also = "", kind }: Command, words: readonly string[]): number {
  const title = name.toLowerCase()
  const all = `${title} ${detail} ${also} ${kindNames[kind]}`.toLowerCase()
  if (!words.every((word) => all.includes(word))) return 0
  if (title.startsWith(words.join(" "))) return 3
  return words.every((word) => title.includes(word)) ? 2 : 1
}
