/** The program of clickhouse-over-chdb: reads statements, parameters and rows as ClickHouse's HTTP interface does. */
import { type IncomingMessage, createServer } from "node:http"
import { createRequire } from "node:module"
import type { AddressInfo } from "node:net"

/** What is used of chDB, which is installed outside the project. */
interface ChdbSession {
  queryAsync(statement: string): Promise<unknown>
  queryBindAsync(
    statement: string,
    params: Record<string, unknown>,
    options: { format: string },
  ): Promise<{ bytes(): Uint8Array }>
  insert(rows: {
    table: string
    columns: string[]
    values: Buffer
    format: string
    settings: Record<string, string>
  }): Promise<unknown>
}

const [, , directory = "", chdb = ""] = process.argv
const { Session } = createRequire(import.meta.url)(chdb) as { Session: new (path: string) => ChdbSession }

const session = new Session(directory)
await session.queryAsync("CREATE DATABASE IF NOT EXISTS umpire ENGINE = Atomic")
await session.queryAsync("USE umpire")

/** The client asks for a format in a header or at the end of the statement. */
const formatAtEnd = /\bFORMAT\s+(\w+)\s*;?\s*$/i

const server = createServer((request, response) => {
  run(request).then(
    ({ bytes, format }) => {
      response.writeHead(200, { "x-clickhouse-format": format, "content-type": "application/octet-stream" })
      response.end(bytes)
    },
    (error: unknown) => {
      response.writeHead(500, { "x-clickhouse-exception-code": "1" })
      response.end(error instanceof Error ? error.message : String(error))
    },
  )
})
server.listen(0, "127.0.0.1", () => {
  const { port } = server.address() as AddressInfo
  process.send?.(`http://127.0.0.1:${port}/umpire`)
})
process.on("disconnect", () => process.kill(process.pid, "SIGKILL"))

async function run(request: IncomingMessage): Promise<{ bytes: Uint8Array; format: string }> {
  const { searchParams } = new URL(request.url ?? "/", "http://localhost")
  const body = await readAll(request)
  const inAddress = searchParams.get("query")
  const statement = inAddress ?? body.toString("utf8")
  if (/^\s*INSERT\s/i.test(statement) && inAddress !== null) return await insert(inAddress, body)
  const format = formatAtEnd.exec(statement)?.[1] ?? searchParams.get("default_format") ?? "TabSeparated"
  const text = statement.replace(formatAtEnd, "")
  const params: Record<string, string> = {}
  for (const [name, value] of searchParams)
    if (name.startsWith("param_")) params[name.slice("param_".length)] = value
  const result = await session.queryBindAsync(text, decoded(params), { format })
  return { bytes: result.bytes(), format }
}

/** Parameters come escaped, as ClickHouse reads them; the library escapes them again. Lists come as literals. */
function decoded(params: Record<string, string>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(params).map(([name, value]) => [
      name,
      value.startsWith("[") ? listOf(value) : unescape(value),
    ]),
  )
}

const escapes: Record<string, string> = { n: "\n", t: "\t", r: "\r", b: "\b", f: "\f", "0": "\0" }
const unescape = (text: string): string =>
  text.replaceAll(/\\(.)/gs, (_, letter: string) => escapes[letter] ?? letter)

function listOf(literal: string): string[] {
  return [...literal.matchAll(/'((?:[^'\\]|\\.)*)'/gs)].map((match) => unescape(match[1] ?? ""))
}

async function insert(statement: string, body: Buffer): Promise<{ bytes: Uint8Array; format: string }> {
  const parts =
    /INSERT INTO (\w+) \(([^)]*)\)\s+SETTINGS insert_deduplication_token = '([^']*)' FORMAT (\w+)/.exec(
      statement,
    )
  if (!parts) throw new Error(`Cannot read the statement: ${statement}`)
  const [, table = "", columns = "", token = "", format = ""] = parts
  await session.insert({
    table: `umpire.${table}`,
    columns: columns.split(", "),
    values: body,
    format,
    settings: { insert_deduplication_token: token },
  })
  return { bytes: new Uint8Array(), format }
}

async function readAll(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks)
}
