/** The server that commands ask, and its API for those that act in an organization. */
import { type Client, createClient } from "../contract/client.ts"
import { type CliContext, UsageError, text } from "./command.ts"
import { serverOf } from "./server-options.ts"

export function connectServer(context: CliContext): { readonly url: string; readonly client: Client } {
  const { url, key } = serverOf(context)
  return { url, client: createClient(url, { authorization: `Bearer ${key}` }) }
}

interface Api {
  readonly client: Client
  /** That of the key, or the one that an option names. */
  readonly organizationId: string
}

export async function connectApi(context: CliContext): Promise<Api> {
  const { url, client } = connectServer(context)
  const given = text(context, "organization")
  const [first] = given === undefined ? await reach(url, () => client.listOrganizations()) : []
  const organizationId = given ?? first?.id
  if (organizationId === undefined) throw new UsageError("the key belongs to no organization")
  return { client, organizationId }
}

interface ListPage<Item> {
  readonly data: readonly Item[]
  readonly next_cursor: string | null
}

/** All pages of a list that is short by its nature. */
export async function everyPage<Item>(
  read: (query: { cursor?: string }) => Promise<ListPage<Item>>,
): Promise<Item[]> {
  const found: Item[] = []
  for (let cursor: string | undefined; ;) {
    const { data, next_cursor } = await read(cursor === undefined ? {} : { cursor })
    found.push(...data)
    if (next_cursor === null) return found
    cursor = next_cursor
  }
}

export async function reach<Result>(url: string, call: () => Promise<Result>): Promise<Result> {
  try {
    return await call()
  } catch (error) {
    // `fetch` says only "fetch failed" when nothing listens.
    if (error instanceof TypeError)
      throw new UsageError(`cannot reach ${url}: is the server running? umpire serve starts it`)
    throw error
  }
}
