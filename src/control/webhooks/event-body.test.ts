import { expect, test } from "vitest"
import { eventBody } from "./event-body.ts"

const event = {
  id: "evt_1",
  type: "alert.firing",
  at: new Date(0),
  organizationId: "org_1",
  data: { rule_name: "<!channel> & *errors*", detail: "[12 %](https://evil.example) of <all>" },
}
const url = "https://umpire.example.com/"

test("a program gets the event", () => {
  expect(JSON.parse(eventBody("umpire", event, url))).toEqual({
    id: "evt_1",
    type: "alert.firing",
    created: "1970-01-01T00:00:00.000Z",
    organization_id: "org_1",
    data: event.data,
  })
})

test("in Slack nothing of a rule is a mention, a link or markup of a header", () => {
  const { text, blocks } = JSON.parse(eventBody("slack", event, url))
  expect(text).toBe("Firing: &lt;!channel&gt; &amp; *errors*")
  expect(blocks[0].text).toEqual({ type: "plain_text", text: "Firing: <!channel> & *errors*", emoji: false })
  expect(blocks[1].text.text).toBe(
    "[12 %](https://evil.example) of &lt;all&gt;\n<https://umpire.example.com/o/org_1/alerts|Open the alerts>",
  )
})

test("Slack's bounds of a header and a section are kept, and the link with them", () => {
  const long = { ...event, data: { rule_name: "n".repeat(200), detail: "<".repeat(2000) } }
  const { blocks } = JSON.parse(eventBody("slack", long, url))
  expect(blocks[0].text.text).toHaveLength(150)
  expect(blocks[1].text.text.length).toBeLessThanOrEqual(3000)
  expect(blocks[1].text.text).toMatch(/\n<https:[^>]*\|Open the alerts>$/)
})

test("in Teams nothing of a rule is a link or emphasis", () => {
  const { content } = JSON.parse(eventBody("teams", { ...event, type: "alert.resolved" }, url)).attachments[0]
  expect(content.body[0].text).toBe(String.raw`Resolved: \<\!channel\> & \*errors\*`)
  expect(content.body[1].text).toBe(String.raw`\[12 %\]\(https://evil.example\) of \<all\>`)
})
