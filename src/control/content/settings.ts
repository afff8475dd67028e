/** What an organization and its keys keep of requests: read, replaced and audited. */
import { explainPattern } from "../../base/redaction.ts"
import {
  type ContentSettings,
  defaultContentSettings,
  type KeyContentSettings,
} from "../../contract/content.ts"
import type { CallOf, Handlers, Handle } from "../../contract/endpoint.ts"
import { Fault } from "../../contract/errors.ts"
import type { PlatformTable } from "../../contract/table.ts"
import { acting, change, type ControlDeps, difference, notFound } from "../audited-change.ts"
import { checkVersion, etag } from "../to-wire.ts"
import type { ContentCipher } from "../../store/content/cipher.ts"
import { countContent } from "../../store/content/content.ts"
import {
  deleteKeyContent,
  type DroppedContent,
  findContentSettings,
  findKeyContent,
  listDropped,
  listKeyContent,
  putContentSettings,
  putKeyContent,
  type StoredContentSettings,
  type StoredKeyContent,
} from "../../store/content/settings.ts"
import { findKey } from "../../store/keys.ts"
import { lockOrganization } from "../../store/organizations.ts"
import { findSet, findVersion } from "../../store/question-sets/sets.ts"
import type { Sql } from "../../store/sql.ts"

/** What the handlers of kept content need. */
export interface ContentAccess {
  readonly cipher: ContentCipher
  /** What this gateway dropped and has not written to the store yet. */
  dropped(organizationId: string): readonly DroppedContent[]
  /** Resolves when what this gateway has answered an organization until now is stored, or cannot be. */
  settle(organizationId: string): Promise<void>
}

export interface ContentControlDeps extends ControlDeps {
  readonly content: ContentAccess
}

type Names = "getContentSettings" | "putContentSettings" | "getKeyContentSettings" | "putKeyContentSettings"
type GivenSettings = CallOf<PlatformTable["putContentSettings"]>["body"]

const unsetVersion = 0n

export function contentSettingsHandlers(deps: ContentControlDeps): Pick<Handlers<PlatformTable>, Names> {
  return {
    async getContentSettings(call) {
      const { organizationId } = acting(call)
      const stored = await findContentSettings(deps.database, organizationId)
      call.header("etag", etag(stored?.version ?? unsetVersion))
      return await viewOf(deps, organizationId, stored)
    },
    putContentSettings: async (call) => await replaceSettings(deps, call),
    async getKeyContentSettings(call) {
      const { organizationId } = acting(call)
      await readKey(deps.database, organizationId, call.params.key_id)
      return await keyViewOf(deps.database, organizationId, call.params.key_id)
    },
    putKeyContentSettings: async (call) => await replaceKeySettings(deps, call),
  }
}

const replaceSettings: Handle<ContentControlDeps, PlatformTable["putContentSettings"]> = async (
  deps,
  call,
) => {
  const { organizationId } = acting(call)
  const given = call.body
  checkKeys(deps, given.keep)
  checkPatterns(given)
  await change(deps, call, async ({ sql, now, audit, invalidate }) => {
    if (!(await lockOrganization(sql, organizationId))) throw notFound("organization")
    const before = await findContentSettings(sql, organizationId)
    checkVersion(call.request, before?.version ?? unsetVersion)
    await checkQuestionSet(sql, organizationId, given.redact.question_set)
    const version = await putContentSettings(sql, {
      organizationId,
      keep: given.keep,
      sampleRate: given.sample_rate,
      retentionDays: given.retention_days,
      redactPatterns: given.redact.patterns,
      redactQuestionSet: given.redact.question_set,
      updatedAt: now,
    })
    await audit(
      "content_settings.replace",
      { organizationId, id: organizationId },
      difference(settingsOf(before), { ...given }),
    )
    invalidate({ table: "content_settings", id: organizationId })
    call.header("etag", etag(version))
  })
  return await viewOf(deps, organizationId, await findContentSettings(deps.database, organizationId))
}

function checkKeys({ content }: ContentControlDeps, keep: GivenSettings["keep"]): void {
  if (keep === "nothing" || content.cipher.isAvailable) return
  throw new Fault(
    "conflict",
    "Cannot keep content: the installation has no key to encrypt it with; the operator sets content.keys",
  )
}

function checkPatterns({ redact }: GivenSettings): void {
  for (const [index, { pattern }] of redact.patterns.entries()) {
    const reason = explainPattern(pattern)
    if (reason === null) continue
    throw new Fault("invalid_body", `Cannot use the pattern ${index + 1}: ${reason}`, {
      details: [{ path: `redact.patterns.${index}.pattern`, message: reason }],
    })
  }
}

async function checkQuestionSet(sql: Sql, organizationId: string, reference: string | null): Promise<void> {
  if (reference === null) return
  const [name = "", label = "latest"] = reference.split("@")
  const set = await findSet(sql, organizationId, name)
  if (set && (await findVersion(sql, set, label))) return
  throw new Fault(
    "invalid_body",
    `Cannot redact with ${reference}: there is no such question set or version`,
    { details: [{ path: "redact.question_set", message: "no such question set or version" }] },
  )
}

const replaceKeySettings: Handle<ContentControlDeps, PlatformTable["putKeyContentSettings"]> = async (
  deps,
  call,
) => {
  const { organizationId } = acting(call)
  const { key_id } = call.params
  const { content } = call.body
  if (content) checkKeys(deps, content.keep)
  return await change(deps, call, async ({ sql, now, audit, invalidate }) => {
    if (!(await lockOrganization(sql, organizationId))) throw notFound("organization")
    await readKey(sql, organizationId, key_id)
    const before = await keyViewOf(sql, organizationId, key_id)
    if (content) {
      await checkRetention(sql, organizationId, content.retention_days)
      await putKeyContent(sql, {
        keyId: key_id,
        organizationId,
        keep: content.keep,
        sampleRate: content.sample_rate,
        retentionDays: content.retention_days ?? null,
        updatedAt: now,
      })
    } else await deleteKeyContent(sql, organizationId, key_id)
    const after = await keyViewOf(sql, organizationId, key_id)
    await audit(
      "content_settings.replace",
      { organizationId, id: key_id, resourceType: "api_key" },
      { before: before.content, after: after.content },
    )
    invalidate({ table: "key_content_settings", id: organizationId })
    return after
  })
}

async function checkRetention(sql: Sql, organizationId: string, days: number | undefined): Promise<void> {
  const { retention_days } = settingsOf(await findContentSettings(sql, organizationId))
  if (days === undefined || days <= retention_days) return
  throw new Fault(
    "invalid_body",
    `Cannot keep the content of the key for ${days} days: the organization keeps it for ${retention_days}`,
    { details: [{ path: "content.retention_days", message: "above the organization's" }] },
  )
}

async function readKey(sql: Sql, organizationId: string, id: string): Promise<void> {
  const key = await findKey(sql, organizationId, id)
  if (!key || key.revokedAt !== null) throw notFound("API key")
}

type Settings = Pick<ContentSettings, "keep" | "sample_rate" | "retention_days" | "redact">

function settingsOf(stored: StoredContentSettings | null): Settings {
  if (!stored)
    return { ...defaultContentSettings, redact: { ...defaultContentSettings.redact, patterns: [] } }
  return {
    keep: stored.keep,
    sample_rate: stored.sampleRate,
    retention_days: stored.retentionDays,
    redact: {
      // Written by replaceSettings above.
      patterns: stored.redactPatterns,
      question_set: stored.redactQuestionSet,
    },
  }
}

async function viewOf(
  { database, content }: ContentControlDeps,
  organizationId: string,
  stored: StoredContentSettings | null,
): Promise<ContentSettings> {
  const [count, written, ofKeys] = [
    await countContent(database, organizationId),
    await listDropped(database, organizationId),
    await listKeyContent(database, organizationId),
  ]
  const settings = settingsOf(stored)
  return {
    ...settings,
    keys: ofKeys.map((one) => ({ api_key_id: one.keyId, ...keyContentOf(one, settings.retention_days) })),
    available: content.cipher.isAvailable,
    stored: count,
    dropped: sumOf([...written, ...content.dropped(organizationId)]),
    version: Number(stored?.version ?? unsetVersion),
  }
}

function sumOf(dropped: readonly DroppedContent[]): ContentSettings["dropped"] {
  const byReason = Map.groupBy(dropped, ({ reason }) => reason)
  const reasons = [...byReason].map(([reason, group]) => ({
    reason,
    count: group.reduce((sum, { count }) => sum + count, 0),
  }))
  const lastMs = Math.max(0, ...dropped.map(({ lastAt }) => lastAt.getTime()))
  return {
    count: reasons.reduce((sum, { count }) => sum + count, 0),
    last_at: lastMs === 0 ? null : new Date(lastMs).toISOString(),
    reasons: reasons.toSorted((a, b) => b.count - a.count),
  }
}

async function keyViewOf(sql: Sql, organizationId: string, keyId: string): Promise<KeyContentSettings> {
  const { keep, sample_rate, retention_days } = settingsOf(await findContentSettings(sql, organizationId))
  const stored = await findKeyContent(sql, organizationId, keyId)
  const content = stored && keyContentOf(stored, retention_days)
  return { content, effective: content ?? { keep, sample_rate, retention_days } }
}

/** Never longer than the organization keeps content now. */
function keyContentOf(
  { keep, sampleRate, retentionDays }: StoredKeyContent,
  organizationDays: number,
): KeyContentSettings["effective"] {
  const days = Math.min(retentionDays ?? organizationDays, organizationDays)
  return { keep, sample_rate: sampleRate, retention_days: days }
}
