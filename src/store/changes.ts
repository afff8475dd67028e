/** What the database tells those who cache its rows: triggers announce each change, with the table and whose it is. */
import type { Database } from "./sql.ts"

const channel = "umpire_changes"

const changedTables = [
  "organizations",
  "memberships",
  "api_keys",
  "sessions",
  "model_access",
  "routing_policies",
  "billing_accounts",
  "workload_identity_providers",
  "workload_signing_keys",
  "question_sets",
  "question_set_jobs",
  "deliveries",
  "batches",
  "content_settings",
  "key_content_settings",
  "guardrails",
  "virtual_models",
  "tag_budgets",
  "connected_models",
  "model_checks",
] as const

export interface Change {
  readonly table: (typeof changedTables)[number]
  /** The row's id; for memberships, model access, routing policies, question sets, content settings, guardrails, virtual models, budgets of tags and connected models the organization's; for checks of models the SKU. */
  readonly id: string
}

interface ChangeFollower {
  invalidate(change: Change): void
  close(): Promise<void>
}

/** Tells them every change until they are closed; closes them where the database cannot be listened to. */
export async function followChanges(
  database: Database,
  ...followers: readonly ChangeFollower[]
): Promise<ChangeFollower> {
  const invalidate = (change: Change): void => {
    for (const follower of followers) follower.invalidate(change)
  }
  const close = async (): Promise<void> =>
    void (await Promise.all(followers.map(async (follower) => await follower.close())))
  const stopListening = await listenToChanges(database, invalidate).catch(async (error: unknown) => {
    await close()
    throw error
  })
  return {
    invalidate,
    close: async () => {
      await stopListening()
      await close()
    },
  }
}

/** Calls `listener` after each commit that changed what may be cached, until the returned function is called. */
export function listenToChanges(
  database: Database,
  listener: (change: Change) => void,
): Promise<() => Promise<void>> {
  return database.listen(channel, (payload) => {
    const at = payload.indexOf(":")
    const table = changedTables.find((known) => known === payload.slice(0, at))
    // A table that this version does not know is announced by a newer schema.
    if (table !== undefined) listener({ table, id: payload.slice(at + 1) })
  })
}
