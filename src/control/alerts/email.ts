/** Alerts by e-mail, through the mail server of the installation. */
import { createRequire } from "node:module"
import type * as Nodemailer from "nodemailer"
import { later } from "../../base/memo.ts"

/** Loaded where mails are sent, which few installations do. */
const nodemailer = later((): typeof Nodemailer => createRequire(import.meta.url)("nodemailer"))

export interface MailSettings {
  readonly host: string
  readonly port: number
  readonly tls: "starttls" | "implicit" | "off"
  /** PEM certificates to trust instead of the system's authorities. */
  readonly ca?: string | undefined
  readonly user?: string | undefined
  readonly password?: string | undefined
  readonly from: string
  /** Where the console is; known once the server listens. */
  readonly publicUrl: () => string
}

interface Mail {
  /** The same in each attempt, so that mail readers can tell a repetition. */
  readonly id: string
  readonly address: string
  /** JSON, as webhooks get it. */
  readonly event: string
}

export interface MailSender {
  send(
    mail: Mail,
  ): Promise<{ readonly status: number | null; readonly error: string | null; isFinal?: boolean }>
  /** Sends what somebody waits for; throws where the mail server does not take it. */
  write(mail: { readonly address: string; readonly subject: string; readonly text: string }): Promise<void>
  /** Connects, upgrades to TLS and signs in, as sending would. Throws what is wrong. */
  check(): Promise<void>
}

const timeoutMs = 20_000

export function createMailSender(settings: MailSettings): MailSender {
  const { host, port, tls, ca, user, password, from } = settings
  const transport = nodemailer().createTransport({
    host,
    port,
    secure: tls === "implicit",
    requireTLS: tls === "starttls",
    ignoreTLS: tls === "off",
    ...(user === undefined ? {} : { auth: { user, pass: password ?? "" } }),
    ...(ca === undefined ? {} : { tls: { ca } }),
    connectionTimeout: timeoutMs,
    greetingTimeout: timeoutMs,
    socketTimeout: timeoutMs,
    dnsTimeout: timeoutMs,
    // Nothing that a text says is read from a file or fetched.
    disableFileAccess: true,
    disableUrlAccess: true,
  })
  return {
    async send({ id, address, event }) {
      try {
        const { subject, text } = mailOf(event, settings.publicUrl())
        await transport.sendMail({
          from,
          to: { name: "", address },
          subject,
          text,
          messageId: `<${id}@umpire>`,
          headers: { "auto-submitted": "auto-generated" },
        })
        return { status: null, error: null }
      } catch (error) {
        return failureOf(error)
      }
    },
    write: async ({ address, subject, text }) =>
      void (await transport.sendMail({
        from,
        to: { name: "", address },
        subject,
        text,
        headers: { "auto-submitted": "auto-generated" },
      })),
    check: async () => void (await transport.verify()),
  }
}

/** A 5xx reply is permanent, except when authentication failed: a password can be corrected. */
function failureOf(error: unknown): { status: number | null; error: string; isFinal: boolean } {
  const { status, name, sentence } = mailFailure(error)
  return {
    status,
    error: sentence,
    isFinal: status !== null && status >= 500 && name !== "EAUTH",
  }
}

/** Why a mail was not taken, without what stands in it. */
export function mailFailure(error: unknown): { status: number | null; name: string; sentence: string } {
  // nodemailer says both of an error, or leaves them out.
  const { responseCode, code } = error as { responseCode?: unknown; code?: unknown }
  const status = typeof responseCode === "number" ? responseCode : null
  const name = typeof code === "string" ? code : "failure"
  const sentence =
    status === null ? `the mail server: ${name}` : `the mail server answered ${status} (${name})`
  return { status, name, sentence }
}

interface AlertEvent {
  readonly type: string
  readonly created: string
  readonly organization_id: string
  readonly data: { readonly rule_name?: string; readonly detail?: string }
}

function mailOf(event: string, publicUrl: string): { readonly subject: string; readonly text: string } {
  // Written when the alert was raised.
  const { type, created, organization_id, data }: AlertEvent = JSON.parse(event)
  const state = type === "alert.resolved" ? "Resolved" : "Firing"
  const name = data.rule_name ?? ""
  return {
    subject: `[Umpire] ${state}: ${name}`,
    text: [
      `${state}: ${name}`,
      "",
      data.detail ?? "",
      "",
      `Organization: ${organization_id}`,
      `Time: ${created}`,
      `Alerts: ${publicUrl}/alerts`,
      "",
    ].join("\n"),
  }
}
