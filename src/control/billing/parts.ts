/** What the billing handlers and tasks are given, and what they have in common. */
import type { Log } from "../../base/log.ts"
import { Fault } from "../../contract/errors.ts"
import { appendAudit } from "../../store/audit.ts"
import { type BillingAccount, findBillingAccount } from "../../store/billing-accounts.ts"
import { listOrganizationsOfBillingAccount } from "../../store/organizations.ts"
import type { TagSpend, TagSpendQuestion } from "../../store/events/upkeep.ts"
import type { Sql } from "../../store/sql.ts"
import { type ControlDeps, notFound } from "../audited-change.ts"
import type { PaymentProvider } from "../payments/provider.ts"

export interface BillingDeps extends ControlDeps {
  /** By name: an account stays with the provider that it was made with. */
  readonly providers: ReadonlyMap<string, PaymentProvider>
  readonly log: Log
  /** Puts what was used until now into the ledger. */
  readonly settle: () => Promise<void>
  /** The address of this installation as browsers see it. */
  readonly publicUrl: () => string
  readonly seller: Seller
  /** From the requests that are kept. Throws where no analytics engine is available. */
  readonly spendByTag: (question: TagSpendQuestion) => Promise<readonly TagSpend[]>
}

/** Who sends the invoices. */
export interface Seller {
  readonly name: string
  readonly addressLines: readonly string[]
  readonly taxNumber: string | null
  /** What prices include; null where invoices say nothing of it. */
  readonly tax: { readonly name: string; readonly percent: number } | null
}

export async function readAccount(sql: Sql, id: string): Promise<BillingAccount> {
  const account = await findBillingAccount(sql, id)
  if (!account) throw notFound("billing account")
  return account
}

export function providerOf({ providers }: BillingDeps, account: BillingAccount): PaymentProvider {
  const provider = providers.get(account.provider)
  if (!provider)
    throw new Fault(
      "payment_provider_failed",
      `Cannot ask the payment provider: ${account.provider} is not configured`,
    )
  return provider
}

interface SystemAuditEvent {
  readonly action: string
  readonly resource: { readonly type: string; readonly id: string }
  readonly before?: unknown
  readonly after?: unknown
}

/** Records what the installation does itself in the audit log of every organization that the account pays for. */
export async function auditSystem(
  { ids }: Pick<BillingDeps, "ids">,
  sql: Sql,
  { billingAccountId, event, at }: { billingAccountId: string; event: SystemAuditEvent; at: Date },
): Promise<void> {
  const organizations = await listOrganizationsOfBillingAccount(sql, billingAccountId)
  // Ascending ids, as everyone locks the chains.
  for (const { id } of organizations.toReversed())
    await appendAudit(sql, {
      id: ids.next("aud"),
      organizationId: id,
      actorKind: "system",
      action: event.action,
      resourceType: event.resource.type,
      resourceId: event.resource.id,
      before: event.before ?? null,
      after: event.after ?? null,
      at,
    })
}
