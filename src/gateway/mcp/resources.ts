/** What the MCP server is made of, and what an agent can read: the published question sets of its organization, and the guides. */
import type { Call, Handlers } from "../../contract/endpoint.ts"
import { RpcError, rpcCodes } from "../../contract/mcp.ts"
import { SetName } from "../../contract/question-sets/content.ts"
import type { Table } from "../../contract/table.ts"
import {
  decodeContent,
  findPublishedSet,
  listPublishedSets,
  type PublishedSet,
} from "../../store/question-sets/sets.ts"
import { countWithinBytes, toPage } from "../../store/pages.ts"
import type { Database } from "../../store/sql.ts"

/** One version may have a mebibyte. */
const setsPerPage = 20

const setPrefix = "umpire://sets/"
const docPrefix = "umpire://docs/"

export async function listResources(
  deps: McpDeps,
  { membership }: McpCaller,
  { cursor }: Record<string, unknown>,
): Promise<unknown> {
  const { sets, nextCursor } = await pageOfSets(deps, membership.organizationId, cursor)
  const docs = cursor === undefined ? [...deps.docs.keys()] : []
  return {
    resources: [
      ...docs.map((name) => ({ uri: docPrefix + name, name, mimeType: "text/markdown" })),
      ...sets.map(({ name, description }) => ({
        uri: setPrefix + name,
        name,
        description,
        mimeType: "application/json",
      })),
    ],
    ...nextCursor,
  }
}

export const listTemplates = (): unknown => ({
  resourceTemplates: [
    {
      uriTemplate: `${setPrefix}{name}`,
      name: "question set",
      description: "The published version of a question set",
      mimeType: "application/json",
    },
    { uriTemplate: `${docPrefix}{page}`, name: "guide", description: "A guide", mimeType: "text/markdown" },
  ],
})

export async function readResource(
  deps: McpDeps,
  { membership }: McpCaller,
  { uri }: Record<string, unknown>,
): Promise<unknown> {
  if (typeof uri !== "string")
    throw new RpcError(rpcCodes.invalidParams, "Invalid params: uri must be a string")
  const found = uri.startsWith(docPrefix)
    ? docOf(deps, uri.slice(docPrefix.length))
    : uri.startsWith(setPrefix)
      ? await setOf(deps, membership.organizationId, uri.slice(setPrefix.length))
      : null
  if (!found) throw new RpcError(rpcCodes.resourceNotFound, "Resource not found", { uri: uri.slice(0, 256) })
  return { contents: [{ uri, ...found }] }
}

function docOf({ docs }: McpDeps, name: string): { mimeType: string; text: string } | null {
  const text = docs.get(name)
  return text === undefined ? null : { mimeType: "text/markdown", text }
}

async function setOf(
  { database }: McpDeps,
  organizationId: string,
  name: string,
): Promise<{ mimeType: string; text: string } | null> {
  const set = SetName.safeParse(name).success ? await findPublishedSet(database, organizationId, name) : null
  return set && { mimeType: "application/json", text: JSON.stringify(describeSet(set)) }
}

/** A cursor is the name that the page before ended with. */
export async function pageOfSets(
  { database }: McpDeps,
  organizationId: string,
  cursor: unknown,
): Promise<{ sets: PublishedSet[]; nextCursor: { nextCursor?: string } }> {
  const after = cursor === undefined ? { data: "" } : SetName.safeParse(cursor)
  if (after.data === undefined) throw new RpcError(rpcCodes.invalidParams, "Invalid params: no such cursor")
  const sets = await listPublishedSets(database, organizationId, after.data, setsPerPage + 1)
  const count = countWithinBytes(sets.map(({ content }) => content.length))
  const { items, nextCursor } = toPage(sets, Math.min(setsPerPage, count), ({ name }) => name)
  return { sets: items, nextCursor: nextCursor === null ? {} : { nextCursor } }
}

export function describeSet({ name, description, number, content }: PublishedSet) {
  const { model, questions } = decodeContent(content)
  return { name, description, version: number, model, questions: questions.map(describeQuestion) }
}

type StoredQuestion = ReturnType<typeof decodeContent>["questions"][number]

function describeQuestion(question: StoredQuestion) {
  const { name, type, instructions } = question
  const answers =
    question.type === "choice"
      ? question.choices.map(({ value }) => value)
      : question.type === "score"
        ? question.levels.map(({ label }) => label)
        : ["yes", "no"]
  return { name, type, instructions, answers }
}

export interface McpDeps {
  readonly database: Database
  /** The handlers of the endpoints that its tools are: what they check, record and charge is the same here. */
  readonly handlers: Pick<Handlers<Table>, "createDecision" | "decideQuestionSet">
  /** The model of decisions that name none. */
  readonly model: string
  readonly version: string
  /** Markdown pages by file name. */
  readonly docs: ReadonlyMap<string, string>
  /** Whether a page of this origin may call. */
  isAllowedOrigin(origin: string): boolean
}

export type McpCaller = Pick<Call, "principal" | "request"> & {
  readonly membership: NonNullable<Call["membership"]>
}
