/** Builds alerts from the configuration: what delivers them, and what rules are evaluated with. */
import { readFileSync } from "node:fs"
import type { Config } from "../base/config-schema.ts"
import { type MailSender, createMailSender } from "../control/alerts/email.ts"
import { alertTasks } from "../control/alerts/evaluate.ts"
import { type AlertFacts, startWorkerHeartbeat } from "../control/alerts/measure.ts"
import type { PeriodicTask } from "../control/periodic.ts"
import { startDeliverer } from "../control/webhooks/deliverer.ts"
import { createWebhookSender } from "../control/webhooks/send.ts"
import type { Change } from "../store/changes.ts"
import type { Events } from "../store/events/events.ts"
import type { Core, Gateway } from "./gateway.ts"

interface Alerts {
  readonly tasks: readonly PeriodicTask[]
  /** For changes made by this process. */
  invalidate(change: Change): void
  close(): Promise<void>
}

export async function openAlerts(
  core: Core,
  { analytics: { events }, routing, money, content }: Gateway,
): Promise<Alerts> {
  const { config, log, publicUrl } = core
  const webhooks = createWebhookSender({ allowPrivate: config.webhooks.allow_private })
  const mail = mailSenderOf(config, publicUrl)
  const deliverer = await startDeliverer({
    ...core,
    webhooks,
    cipher: content.access.cipher,
    mail,
    recipients: config.email.recipients,
  })
  const facts: AlertFacts = { requests: events && ((selection) => summaryOf(events, selection)) }
  const heartbeat = startWorkerHeartbeat({
    ...core,
    gatewayId: money.journal.gatewayId,
    workers: () =>
      routing
        .report()
        .flatMap(({ model, workers }) =>
          workers.map(({ id, healthy, breaker }) => ({ model, id, isUp: healthy && breaker !== "open" })),
        ),
  })
  const invalidate = (change: Change): void => deliverer.invalidate(change)
  return {
    tasks: alertTasks({ ...core, log, facts, invalidate }),
    invalidate,
    close: async () => {
      await heartbeat.close()
      await deliverer.close()
      await webhooks.close()
    },
  }
}

/** Null when no mail server is configured. */
export function mailSenderOf({ email }: Config, publicUrl: () => string): MailSender | null {
  if (email.smtp_host === undefined) return null
  return createMailSender({
    host: email.smtp_host,
    port: email.smtp_port,
    tls: email.smtp_tls,
    ca: email.smtp_ca_file === undefined ? undefined : readFileSync(email.smtp_ca_file, "utf8"),
    user: email.smtp_user,
    password: email.smtp_password,
    from: email.from,
    publicUrl,
  })
}

type Requests = NonNullable<AlertFacts["requests"]>

async function summaryOf(events: Events, selection: Parameters<Requests>[0]): ReturnType<Requests> {
  const { summary } = await events.ask("overview", {
    ...selection,
    groupBy: "result",
    metric: "requests",
    buckets: 1,
    limit: 1,
  })
  return { requests: summary.requests, errors: summary.errors, p95LatencyMs: summary.p95_latency_ms }
}
