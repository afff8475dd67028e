/** The server's API for commands that act in an organization. */
import { type Client, createClient } from "../contract/client.ts"
import { type CliContext, UsageError, text } from "./command.ts"

interface Api {
  readonly client: Client
  /** That of the key, or the one that an option names. */
  readonly organizationId: string
}

const defaultUrl = "http://127.0.0.1:8484"

export async function connectApi(context: CliContext): Promise<Api> {
  const key = text(context, "key") ?? context.environment["UMPIRE_API_KEY"]
  if (!key) throw new UsageError("no API key: set UMPIRE_API_KEY, or make one with umpire keys create")
  const url = text(context, "url") ?? context.environment["UMPIRE_URL"] ?? defaultUrl
  const client = createClient(url, { authorization: `Bearer ${key}` })
  const given = text(context, "organization")
  const [first] = given === undefined ? await reach(url, () => client.listOrganizations()) : []
  const organizationId = given ?? first?.id
  if (organizationId === undefined) throw new UsageError("the key belongs to no organization")
  return { client, organizationId }
}

async function reach<Result>(url: string, call: () => Promise<Result>): Promise<Result> {
  try {
    return await call()
  } catch (error) {
    // `fetch` says only "fetch failed" when nothing listens.
    if (error instanceof TypeError)
      throw new UsageError(`cannot reach ${url}: is the server running? umpire serve starts it`)
    throw error
  }
}
