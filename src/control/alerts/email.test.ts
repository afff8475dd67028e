/** E-mail through a real SMTP server on loopback: STARTTLS, authentication, refusals, and texts that try to be headers. */
import type { AddressInfo } from "node:net"
import { text } from "node:stream/consumers"
import { SMTPServer, type SMTPServerOptions } from "smtp-server"
import { afterAll, afterEach, expect, test } from "vitest"
import { OpenSsl, caExtensions, serverExtensions } from "../../../test/openssl.ts"
import { type MailSettings, createMailSender } from "./email.ts"

const openssl = new OpenSsl()
const authority = openssl.issue({ subject: "/CN=authority", extensions: caExtensions })
const own = openssl.issue({
  subject: "/CN=mail",
  issuer: authority,
  extensions: serverExtensions("IP:127.0.0.1"),
})

interface Received {
  readonly to: readonly string[]
  readonly isSecure: boolean
  readonly user: unknown
  readonly content: string
}

let server: SMTPServer | null = null
let received: Received[] = []
let passwords: unknown[] = []

afterEach(async () => {
  const closing = server
  server = null
  if (closing) await new Promise<void>((resolve) => closing.close(resolve))
  received = []
  passwords = []
})
afterAll(() => openssl.close())

async function listen(options: SMTPServerOptions = {}): Promise<MailSettings> {
  const started = new SMTPServer({
    key: own.key,
    cert: own.certificate,
    onAuth: ({ username, password }, _, done) => {
      passwords.push(password)
      if (username === "ada" && password === "right") done(null, { user: username })
      else done(new Error("wrong"))
    },
    onData: (stream, session, done) => {
      void text(stream).then((content) => {
        const to = session.envelope.rcptTo.map(({ address }) => address)
        received.push({ to, isSecure: session.secure, user: session.user, content })
        done()
      })
    },
    ...options,
  })
  server = started
  // A client that gives up in the middle is what some tests are about.
  started.on("error", () => undefined)
  const port = await new Promise<number>((resolve) => {
    const listening = started.listen(0, "127.0.0.1", () => resolve((listening.address() as AddressInfo).port))
  })
  return {
    host: "127.0.0.1",
    port,
    tls: "starttls",
    ca: authority.certificate,
    user: "ada",
    password: "right",
    from: "Umpire <umpire@example.com>",
    publicUrl: () => "https://umpire.example",
  }
}

const eventOf = (ruleName: string): string =>
  JSON.stringify({
    id: "evt_1",
    type: "alert.firing",
    created: "2026-11-16T10:00:00.000Z",
    organization_id: "org_1",
    data: { rule_name: ruleName, detail: "12.0% of 500 requests in 15 minutes failed." },
  })
const mail = { id: "dlv_1", address: "grace@example.com", event: eventOf("Errors") }

test("an alert is sent over STARTTLS, signed in, with an id that is the same in each attempt", async () => {
  const sender = createMailSender(await listen())
  await sender.check()
  expect(await sender.send(mail)).toEqual({ status: null, error: null })
  expect(received).toHaveLength(1)
  expect(received[0]).toMatchObject({ to: ["grace@example.com"], isSecure: true, user: "ada" })
  const content = received[0]?.content ?? ""
  expect(content).toContain("Subject: [Umpire] Firing: Errors")
  expect(content).toContain("Message-ID: <dlv_1@umpire>")
  expect(content).toContain("12.0% of 500 requests in 15 minutes failed.")
  expect(content).toContain("https://umpire.example/alerts")
})

test("a server that does not offer STARTTLS gets no mail and no password", async () => {
  const sender = createMailSender(await listen({ disabledCommands: ["STARTTLS"], allowInsecureAuth: true }))
  const { error } = await sender.send(mail)
  expect(error).toContain("ETLS")
  await expect(sender.check()).rejects.toThrow()
  expect([received, passwords]).toEqual([[], []])
})

test("a server whose certificate is not trusted gets no mail and no password", async () => {
  const { ca: _, ...settings } = await listen()
  const { error, isFinal } = await createMailSender(settings).send(mail)
  expect(error).not.toBeNull()
  expect(isFinal).toBe(false)
  expect([received, passwords]).toEqual([[], []])
})

test("a wrong password is told without it, and tried again later", async () => {
  const sender = createMailSender({ ...(await listen()), password: "wrong-password" })
  const { error, isFinal } = await sender.send(mail)
  expect(error).toContain("EAUTH")
  expect(error).not.toContain("wrong-password")
  expect(isFinal).toBe(false)
})

test.each([
  [550, true],
  [450, false],
])("a recipient that is refused with %i is final: %s", async (responseCode, isFinal) => {
  const settings = await listen({
    onRcptTo: (_address, _session, done) => done(Object.assign(new Error("refused"), { responseCode })),
  })
  expect(await createMailSender(settings).send(mail)).toMatchObject({ status: responseCode, isFinal })
})

test("a name that tries to be a header stays in the subject", async () => {
  const sender = createMailSender(await listen())
  await sender.send({ ...mail, event: eventOf("x\r\nBcc: eve@example.com\r\n\r\nbody") })
  expect(received[0]?.to).toEqual(["grace@example.com"])
  expect(received[0]?.content.split("\r\n\r\n")[0]).not.toMatch(/^Bcc:/im)
})
