import { once } from "node:events"
import { type IncomingHttpHeaders, createServer } from "node:http"
import { type AddressInfo, connect } from "node:net"
import fc from "fast-check"
import { afterAll, beforeAll, expect, test } from "vitest"
import { readHead } from "./head.ts"

const bytesMax = 16 * 1024
const read = (text: string): ReturnType<typeof readHead> => readHead(Buffer.from(text, "latin1"), bytesMax)

const plain = "POST /v1/decisions HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}"

test("a plain head is read: its path, its headers by small names, and where the body is", () => {
  expect(read(plain)).toEqual({
    path: "/v1/decisions",
    headers: { host: "a", "content-length": "2" },
    length: plain.length - 2,
    bodyLength: 2,
  })
  expect(
    read(plain.replace("Host: a", "Host:a\r\nconnection: Keep-Alive\r\nX: b  c:d"))?.headers,
  ).toMatchObject({
    host: "a",
    connection: "Keep-Alive",
    x: "b  c:d",
  })
})

/** So many bytes of head. */
function long(length: number): string {
  const head = plain.replace("Host: a", "Host: a\r\nx: ").slice(0, -2)
  return plain.replace("Host: a", `Host: a\r\nx: ${"y".repeat(length - head.length)}`)
}

test("a head that is not whole, or longer than a head may be, is not read", () => {
  for (let end = 0; end < plain.length - 2; end++) expect(read(plain.slice(0, end))).toBeNull()
  expect(read(long(bytesMax))?.length).toBe(bytesMax)
  expect(read(long(bytesMax + 1))).toBeNull()
})

const others: Readonly<Record<string, string>> = {
  "another method": plain.replace("POST", "PUT"),
  "a method in small letters": plain.replace("POST", "post"),
  "an older version": plain.replace("1.1", "1.0"),
  "a query": plain.replace("decisions", "decisions?a=1"),
  "a whole address": plain.replace("/v1", "http://a/v1"),
  "two blanks": plain.replace("POST ", "POST  "),
  "no host": plain.replace("Host: a\r\n", ""),
  "two hosts": plain.replace("Host: a", "Host: a\r\nhost: b"),
  "no length": plain.replace("Content-Length: 2\r\n", ""),
  "two lengths": plain.replace("Content-Length: 2", "Content-Length: 2\r\nContent-Length: 2"),
  "a list of lengths": plain.replace(": 2", ": 2, 2"),
  "a length with a sign": plain.replace(": 2", ": +2"),
  "a length in another base": plain.replace(": 2", ": 0x2"),
  "a length with a blank in it": plain.replace(": 2", ": 2 2"),
  "a length beyond all bounds": plain.replace(": 2", ": 9999999999"),
  "a body in chunks": plain.replace("Host", "Transfer-Encoding: chunked\r\nHost"),
  "another coding of the body": plain.replace("Host", "Transfer-Encoding: identity\r\nHost"),
  "a wish to be asked first": plain.replace("Host", "Expect: 100-continue\r\nHost"),
  "another protocol": plain.replace("Host", "Upgrade: h2c\r\nHost"),
  "a connection that ends": plain.replace("Host", "Connection: close\r\nHost"),
  "a connection that ends, for a proxy": plain.replace("Host", "Proxy-Connection: close\r\nHost"),
  "a folded line": plain.replace("Host: a", "Host: a\r\n b"),
  "a blank before the colon": plain.replace("Host:", "Host :"),
  "a line without a colon": plain.replace("Host: a", "Host: a\r\nb"),
  "a line without a name": plain.replace("Host: a", "Host: a\r\n: b"),
  "a value without end": plain.replace("Host: a", "Host: a "),
  "an empty value": plain.replace("Host: a", "Host: a\r\nb:"),
  "a tab": plain.replace("Host: a", "Host:\ta"),
  "a bare line feed": plain.replace("Host: a", "Host: a\nb: c"),
  "a bare carriage return": plain.replace("Host: a", "Host: a\rb: c"),
  "a zero": plain.replace("Host: a", "Host: a\0"),
  "a byte beyond ASCII": plain.replace("Host: a", "Host: \u00e9"),
  "a name of the language": plain.replace("Host: a", "Host: a\r\n__proto__: b"),
  "empty lines before it": `\r\n${plain}`,
}

test.each(Object.keys(others))("%s is left to node", (name) => {
  expect(read(others[name] ?? "")).toBeNull()
})

interface Seen {
  readonly url: string | undefined
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

/** What node:http makes of the same bytes; null when it refuses them or waits for more. */
const server = createServer((message, response) => {
  const chunks: Buffer[] = []
  message.on("data", (chunk: Buffer) => chunks.push(chunk))
  message.on("end", () => {
    const seen: Seen = {
      url: message.url,
      headers: message.headers,
      body: Buffer.concat(chunks).toString("latin1"),
    }
    response.end(JSON.stringify(seen))
  })
})
beforeAll(async () => await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve)))
afterAll(() => void server.close())

async function seenByNode(text: string): Promise<Seen | null> {
  const socket = connect((server.address() as AddressInfo).port, "127.0.0.1")
  let answer = ""
  socket.setEncoding("latin1").on("data", (part: string) => (answer += part))
  socket.end(text, "latin1")
  await once(socket, "close")
  if (!answer.startsWith("HTTP/1.1 200")) return null
  return JSON.parse(/\{.*\}/s.exec(answer)?.[0] ?? "null") as Seen
}

const name = fc.constantFrom(
  "host",
  "Content-Length",
  "content-length",
  "X-A",
  "x-a",
  "Connection",
  "Transfer-Encoding",
  "a_b",
  "",
)
const value = fc.oneof(
  fc.constantFrom(
    "a",
    "2",
    "02",
    "3",
    "keep-alive",
    "close",
    "chunked",
    "a ",
    " a",
    "a\tb",
    "\u00e9",
    "a\r\n b",
    "a\nb: c",
  ),
  fc.string({ maxLength: 4 }),
)
const line = fc.tuple(name, fc.constantFrom(":", ": ", " : ", ":  "), value).map((parts) => parts.join(""))
const request = fc
  .tuple(
    fc.constantFrom(
      "POST / HTTP/1.1",
      "POST /a HTTP/1.1",
      "POST /a?b HTTP/1.1",
      "POST /a HTTP/1.0",
      "POST /\u00e9 HTTP/1.1",
    ),
    fc.array(line, { maxLength: 3 }),
    fc.constantFrom("\r\n", "\r\n", "\r\n", "\n"),
    fc.constantFrom("{}", "{}x"),
  )
  .map(([first, lines, end, body]) => [first, "host: a", "content-length: 2", ...lines, "", body].join(end))

test("whatever is read here, node reads in the same way", async () => {
  let accepted = 0
  await fc.assert(
    fc.asyncProperty(request, async (text) => {
      const head = read(text)
      if (!head) return
      accepted++
      const seen = await seenByNode(text.slice(0, head.length + head.bodyLength))
      expect(seen).toEqual({
        url: head.path,
        headers: { ...head.headers },
        body: text.slice(head.length, head.length + head.bodyLength),
      })
    }),
    { numRuns: 3_000 },
  )
  expect(accepted).toBeGreaterThan(50)
})
