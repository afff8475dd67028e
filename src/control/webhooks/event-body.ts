/** What a webhook sends of an event: the event itself, or a message as a chat takes it. */
import type { WebhookFormat } from "../../contract/alerts/webhooks.ts"

interface EventFacts {
  readonly id: string
  readonly type: string
  readonly at: Date
  readonly organizationId: string
  readonly data: Readonly<Record<string, unknown>>
}

export function eventBody(format: WebhookFormat, event: EventFacts, publicUrl: string): string {
  switch (format) {
    case "umpire": {
      const { id, type, at, organizationId, data } = event
      return JSON.stringify({ id, type, created: at.toISOString(), organization_id: organizationId, data })
    }
    case "slack":
      return JSON.stringify(slackMessage(messageOf(event, publicUrl)))
    case "teams":
      return JSON.stringify(teamsMessage(messageOf(event, publicUrl)))
  }
}

interface Message {
  readonly title: string
  readonly detail: string
  /** The page of the alerts. */
  readonly link: string
}

function messageOf({ type, data, organizationId }: EventFacts, publicUrl: string): Message {
  const link = `${publicUrl.replace(/\/$/, "")}/o/${organizationId}/alerts`
  const { rule_name: name, detail } = data
  if (typeof name !== "string")
    return { title: "Test from Umpire", detail: "This webhook works: alerts will come here.", link }
  const state = type === "alert.resolved" ? "Resolved" : "Firing"
  return { title: `${state}: ${name}`, detail: typeof detail === "string" ? detail : "", link }
}

/** What Slack's markup would take for a link, a mention or a tag is text. */
const escaped = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;")

/** Not within an escaped sign. */
const cutText = (text: string, max: number): string => text.slice(0, max).replace(/&\w*$/, "")

/** Slack shows at most so many characters of a section. */
const sectionCharactersMax = 3000
const headerCharactersMax = 150

function slackMessage({ title, detail, link }: Message): unknown {
  const header = { type: "plain_text", text: title.slice(0, headerCharactersMax), emoji: false }
  const action = `\n<${link}|Open the alerts>`
  const section = cutText(escaped(detail), sectionCharactersMax - action.length) + action
  return {
    // For notifications, which show no blocks.
    text: escaped(title),
    blocks: [
      { type: "header", text: header },
      { type: "section", text: { type: "mrkdwn", text: section } },
    ],
  }
}

/** The signs that Adaptive Cards take for markup are text. */
const literal = (text: string): string => text.replaceAll(/[\\`*_[\]()#+\-!~|<>]/g, String.raw`\$&`)

const block = (text: string, more: object = {}) => ({
  type: "TextBlock",
  text: literal(text),
  wrap: true,
  ...more,
})

function teamsMessage({ title, detail, link }: Message): unknown {
  return {
    type: "message",
    attachments: [
      {
        contentType: "application/vnd.microsoft.card.adaptive",
        contentUrl: null,
        content: {
          $schema: "http://adaptivecards.io/schemas/adaptive-card.json",
          type: "AdaptiveCard",
          version: "1.4",
          body: [block(title, { weight: "Bolder", size: "Medium" }), ...(detail ? [block(detail)] : [])],
          actions: [{ type: "Action.OpenUrl", title: "Open the alerts", url: link }],
        },
      },
    ],
  }
}
