/** Settings of what is reached outside: Stripe, the mail server and S3, each a server on loopback. */
import { openTestDatabase } from "./database.ts"
import { mkdtempSync, rmSync } from "node:fs"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { text } from "node:stream/consumers"
import { SMTPServer, type SMTPServerOptions } from "smtp-server"
import { afterAll, afterEach, expect, test } from "vitest"
import { loadConfig } from "../src/base/config.ts"
import type { Config } from "../src/base/config-schema.ts"
import { systemClock } from "../src/base/clock.ts"
import { silentLog } from "../src/base/log.ts"
import type { MailSender } from "../src/control/alerts/email.ts"
import type { PaymentProvider } from "../src/control/payments/provider.ts"
import { mailSenderOf } from "../src/main/alerts.ts"
import { providersOf } from "../src/main/billing.ts"
import { openStorage } from "../src/main/batches.ts"
import { OpenSsl, caExtensions, serverExtensions } from "./openssl.ts"
import { startSignedStore } from "./s3-signature.ts"
import { StripeFake } from "./stripe-fake.ts"

const directory = mkdtempSync(join(tmpdir(), "umpire-settings-"))
const openssl = new OpenSsl()
const authority = openssl.issue({ subject: "/CN=authority", extensions: caExtensions })
const certified = openssl.issue({
  subject: "/CN=mail",
  issuer: authority,
  extensions: serverExtensions("IP:127.0.0.1"),
})
const closers: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0)) await close()
})
afterAll(() => {
  openssl.close()
  rmSync(directory, { recursive: true })
})

const configOf = (environment: Record<string, string>): Config =>
  loadConfig({ UMPIRE_DATA_DIR: directory, ...environment }, directory)

async function startStripe(): Promise<StripeFake> {
  const stripe = await StripeFake.start()
  closers.push(() => stripe.stop())
  return stripe
}

async function stripeOf(environment: Record<string, string>): Promise<PaymentProvider> {
  const provider = (await providersOf(configOf(environment))).get("stripe")
  if (!provider) throw new Error("Stripe is not configured")
  return provider
}

const customer = { billingAccountId: "ba_1", email: "ada@example.com" }

test("billing.stripe_api_url and billing.stripe_secret_key: Stripe is asked there, with the key", async () => {
  const [stripe, other] = [await startStripe(), await startStripe()]
  const provider = await stripeOf({
    UMPIRE_BILLING_STRIPE_SECRET_KEY: "sk_test_one",
    UMPIRE_BILLING_STRIPE_API_URL: stripe.url,
  })
  const id = await provider.createCustomer(customer)
  expect([...stripe.customers.keys()]).toEqual([id])
  expect(new Set(stripe.authorizations)).toEqual(new Set(["Bearer sk_test_one"]))
  expect(other.requests).toEqual([])
})

test("billing.stripe_webhook_secret: events are taken only with its signature", async () => {
  const stripe = await startStripe()
  const settings = {
    UMPIRE_BILLING_STRIPE_SECRET_KEY: "sk_test_one",
    UMPIRE_BILLING_STRIPE_API_URL: stripe.url,
  }
  const [configured, without] = [
    await stripeOf({ ...settings, UMPIRE_BILLING_STRIPE_WEBHOOK_SECRET: stripe.webhookSecret }),
    await stripeOf(settings),
  ]
  stripe.enterCard(await configured.createCustomer(customer), "pm_good")
  const [event] = stripe.events
  const body = Buffer.from(event?.body ?? "")
  const signature = stripe.sign(event?.body ?? "")
  expect(configured.readEvent?.(body, signature)).toMatchObject({ type: "checkout.session.completed" })
  const forged = stripe.sign(event?.body ?? "", "whsec_other")
  for (const refused of [
    () => configured.readEvent?.(body, forged),
    () => without.readEvent?.(body, signature),
  ])
    expect(refused).toThrow(expect.objectContaining({ code: "invalid_signature" }))
})

interface Mail {
  readonly from: string
  readonly content: string
  readonly isSecure: boolean
  readonly user: unknown
}

/** A mail server that takes the user ada with the password right, or anyone where authentication is optional. */
async function startMail(options: SMTPServerOptions = {}): Promise<{ port: string; mails: Mail[] }> {
  const mails: Mail[] = []
  const server = new SMTPServer({
    key: certified.key,
    cert: certified.certificate,
    authOptional: true,
    onAuth: ({ username, password }, _, done) =>
      username === "ada" && password === "right"
        ? done(null, { user: username })
        : done(new Error("wrong user or password")),
    onData: (stream, { envelope, secure, user }, done) => {
      void text(stream).then((content) => {
        const from = envelope.mailFrom === false ? "" : envelope.mailFrom.address
        mails.push({ from, content, isSecure: secure, user })
        done()
      })
    },
    ...options,
  })
  // A client that does not trust the certificate hangs up.
  server.on("error", () => undefined)
  closers.push(() => new Promise<void>((resolve) => server.close(resolve)))
  const port = await new Promise<number>((resolve) => {
    const listening = server.listen(0, "127.0.0.1", () => resolve((listening.address() as AddressInfo).port))
  })
  return { port: String(port), mails }
}

async function senderOf(environment: Record<string, string>): Promise<MailSender> {
  const settings = { UMPIRE_EMAIL_SMTP_HOST: "127.0.0.1", ...environment }
  const sender = mailSenderOf(configOf(settings), () => "https://umpire.example")
  if (!sender) throw new Error("No mail server is configured")
  return sender
}

const event = JSON.stringify({
  id: "evt_1",
  type: "alert.firing",
  created: "2026-11-16T10:00:00.000Z",
  organization_id: "org_1",
  data: { rule_name: "Errors", detail: "12.0% of 500 requests failed." },
})
const mail = { id: "dlv_1", address: "grace@example.com", event }

test("email.smtp_host, smtp_port and from: alerts are sent there, from that sender; without a host none is", async () => {
  expect(mailSenderOf(configOf({}), () => "")).toBeNull()
  const { port, mails } = await startMail()
  const sender = await senderOf({
    UMPIRE_EMAIL_SMTP_PORT: port,
    UMPIRE_EMAIL_SMTP_TLS: "off",
    UMPIRE_EMAIL_FROM: "Umpire of Acme <alerts@acme.example>",
  })
  expect(await sender.send(mail)).toMatchObject({ error: null })
  expect(mails).toMatchObject([{ from: "alerts@acme.example", isSecure: false }])
  expect(mails[0]?.content).toContain("From: Umpire of Acme <alerts@acme.example>")
})

test.each(["starttls", "implicit"])(
  "email.smtp_tls %s with email.smtp_ca_file: mail is encrypted, to a server that the file vouches for",
  async (tls) => {
    const { port, mails } = await startMail({ secure: tls === "implicit" })
    const settings = { UMPIRE_EMAIL_SMTP_PORT: port, UMPIRE_EMAIL_SMTP_TLS: tls }
    expect((await (await senderOf(settings)).send(mail)).error).not.toBeNull()
    expect(mails).toEqual([])
    const trusting = await senderOf({ ...settings, UMPIRE_EMAIL_SMTP_CA_FILE: authority.certificateFile })
    expect(await trusting.send(mail)).toMatchObject({ error: null })
    expect(mails).toMatchObject([{ isSecure: true }])
  },
)

test("email.smtp_user and email.smtp_password: the server is signed in to with them", async () => {
  const { port, mails } = await startMail()
  const settings = {
    UMPIRE_EMAIL_SMTP_PORT: port,
    UMPIRE_EMAIL_SMTP_CA_FILE: authority.certificateFile,
    UMPIRE_EMAIL_SMTP_USER: "ada",
  }
  const wrong = await senderOf({ ...settings, UMPIRE_EMAIL_SMTP_PASSWORD: "wrong" })
  expect((await wrong.send(mail)).error).not.toBeNull()
  const right = await senderOf({ ...settings, UMPIRE_EMAIL_SMTP_PASSWORD: "right" })
  expect(await right.send(mail)).toMatchObject({ error: null })
  expect(mails).toMatchObject([{ user: "ada" }])
})

async function* pieces(): AsyncGenerator<Uint8Array> {
  yield Buffer.from("bytes")
}

test("files.s3_*: files are put there, in the bucket and under the prefix, signed with the key for the region", async () => {
  const store = await startSignedStore("AKID", "s3 secret", "eu-west-9")
  closers.push(() => new Promise((resolve) => store.server.close(resolve)))
  const settings = {
    UMPIRE_FILES_S3_ENDPOINT: store.url,
    UMPIRE_FILES_S3_BUCKET: "acme",
    UMPIRE_FILES_S3_PREFIX: "some/where/",
    UMPIRE_FILES_S3_REGION: "eu-west-9",
    UMPIRE_FILES_S3_ACCESS_KEY_ID: "AKID",
    UMPIRE_FILES_S3_SECRET_ACCESS_KEY: "s3 secret",
  }
  const database = await openTestDatabase()
  closers.push(async () => await database.close())
  const open = async (changed: Partial<typeof settings>) =>
    await openStorage(configOf({ ...settings, ...changed }), { database, clock: systemClock, log: silentLog })
  const storage = await open({})
  const blob = await storage.stage(pieces())
  await blob.place("org_1")
  const paths = [...store.objects.keys()]
  expect(paths[0]).toMatch(/^\/acme\/some\/where\/staging\/[\w-]{36}$/)
  expect(paths[1]).toBe(`/acme/some/where/org_1/${blob.sha256.slice(0, 2)}/${blob.sha256}`)
  expect(store.objects.get(paths[0] ?? "")?.toString()).toBe("bytes")
  expect(store.refused).toBe(0)
  const wrong = await open({ UMPIRE_FILES_S3_SECRET_ACCESS_KEY: "another" })
  await expect(wrong.stage(pieces())).rejects.toThrow("403 SignatureDoesNotMatch")
  const unset = { UMPIRE_FILES_S3_BUCKET: "acme" }
  await expect(
    openStorage(configOf(unset), { database, clock: systemClock, log: silentLog }),
  ).rejects.toThrow("s3_access_key_id")
})
