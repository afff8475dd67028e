/** The server that commands ask, and its API for those that act in an organization. */
import { type Client, createClient } from "../contract/client.ts"
import { type CliContext, UsageError, text } from "./command.ts"
import { serverOf } from "./server-options.ts"

/** No server answers at the address. */
export class Unreachable extends UsageError {}

interface Server {
  readonly url: string
  readonly authorization: string
  readonly client: Client
  /** As the global one, of this server. */
  readonly fetch: typeof fetch
}

export function connectServer(context: CliContext): Server {
  const { url, key } = serverOf(context)
  const authorization = `Bearer ${key}`
  const fetcher = fetchFrom(url)
  return { url, authorization, client: createClient(url, { authorization }, fetcher), fetch: fetcher }
}

const fetchFrom =
  (url: string): typeof fetch =>
  async (input, options) => {
    try {
      return await fetch(input, options)
    } catch (cause) {
      // `fetch` says only "fetch failed" when nothing listens.
      if (!(cause instanceof TypeError)) throw cause
      throw new Unreachable(
        `cannot reach ${url}: is the server running? umpire serve starts it; --url or UMPIRE_URL names another`,
        { cause },
      )
    }
  }

interface Api {
  readonly url: string
  readonly client: Client
  /** That of the key, or the one that an option names. */
  readonly organizationId: string
}

export async function connectApi(context: CliContext): Promise<Api> {
  const { url, client } = connectServer(context)
  const given = text(context, "organization")
  const [first] = given === undefined ? await client.listOrganizations() : []
  const organizationId = given ?? first?.id
  if (organizationId === undefined) throw new UsageError("the key belongs to no organization")
  return { url, client, organizationId }
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
