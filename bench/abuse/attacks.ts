/** Requests that once held up or ended a gateway, as data: a name and what one attacker does. */
import { connect } from "node:net"
import { setTimeout as wait } from "node:timers/promises"
import { request } from "undici"
import { WebSocket } from "ws"

export interface Target {
  readonly url: string
  readonly key: string
}

export interface Attack {
  readonly name: string
  /** Built and encoded before anything is measured. */
  readonly body?: () => string
  /** Returns what became of it, in a few words. */
  run(target: Target, body: Buffer): Promise<string>
}

const mebibyte = 1024 * 1024
/** For chat and responses. */
const model = "umpire-chat"
const many = (count: number, text: string): string => Array.from({ length: count }, () => text).join(",")
const fill = (bytes: number, text: string): string => many(Math.floor(bytes / (text.length + 1)), text)
const nested = (count: number, open: string, inner: string, close: string): string =>
  open.repeat(count) + inner + close.repeat(count)

const answerMsMax = 120_000

async function post({ url, key }: Target, path: string, body: Buffer): Promise<string> {
  const response = await request(url + path, {
    method: "POST",
    headers: {
      ...(key === "" ? {} : { authorization: `Bearer ${key}` }),
      "content-type": "application/json",
    },
    body,
    signal: AbortSignal.timeout(answerMsMax),
  })
  const text = await response.body.text()
  return `${response.statusCode} ${/"code":"(\w+)"/.exec(text)?.[1] ?? ""}`.trim()
}

/** One body sent several times at once. */
const posted = (name: string, path: string, body: () => string, times = 1): Attack => ({
  name,
  body,
  run: async (target, bytes) => {
    const outcomes = await Promise.all(
      Array.from({ length: times }, async () => await post(target, path, bytes).catch(String)),
    )
    const counts = new Map<string, number>()
    for (const outcome of outcomes) counts.set(outcome, (counts.get(outcome) ?? 0) + 1)
    return [...counts].map(([outcome, count]) => (times === 1 ? outcome : `${count} x ${outcome}`)).join(", ")
  },
})

const responses = (input: string): string => `{"model":"${model}","input":[${input}]}`
const chat = (messages: string, more = ""): string => `{"model":"${model}","messages":[${messages}]${more}}`
const hello = '{"role":"user","content":"Hi"}'
const withSchema = (schema: string): string =>
  chat(
    hello,
    `,"max_tokens":8,"response_format":{"type":"json_schema","json_schema":{"name":"a","schema":${schema}}}`,
  )
const decisions = (input: string, questions: string): string =>
  `{"model":"umpire-decide","input":${JSON.stringify(input)},"questions":[${questions}]}`

const bodies: Attack[] = [
  posted("responses: 90 KB of {}", "/v1/responses", () => responses(fill(90_000, "{}"))),
  posted("responses: 900 KB of {}", "/v1/responses", () => responses(fill(900_000, "{}"))),
  posted("responses: 2.79 million {}", "/v1/responses", () => responses(many(2_790_000, "{}"))),
  posted("chat: 8 MiB of invalid messages", "/v1/chat/completions", () => chat(fill(8 * mebibyte, "{}"))),
  posted("chat: 8 MiB of content parts", "/v1/chat/completions", () =>
    chat(`{"role":"user","content":[${fill(8 * mebibyte, '{"type":"text","text":""}')}]}`),
  ),
  posted("chat: 32 MiB of text", "/v1/chat/completions", () =>
    chat(JSON.stringify({ role: "user", content: "word ".repeat((32 * mebibyte - 200) / 5) })),
  ),
  posted("chat: 20,000 messages of one letter", "/v1/chat/completions", () =>
    chat(many(20_000, '{"role":"user","content":"a"}')),
  ),
  posted("chat: 4,096 messages of one letter", "/v1/chat/completions", () =>
    chat(many(4096, '{"role":"user","content":"a"}'), ',"max_tokens":1'),
  ),
  posted(
    "chat: 64 of 100 KB that are ignored",
    "/v1/chat/completions",
    () => chat(hello, `,"max_tokens":1,"metadata":[${fill(100_000, "[]")}]`),
    64,
  ),
  posted(
    "embeddings: 8 MiB of []",
    "/v1/embeddings",
    () => `{"model":"all-minilm-l6-v2","input":[${fill(8 * mebibyte, "[]")}]}`,
  ),
  posted("JSON nested a million deep", "/v1/responses", () => responses(nested(1_000_000, "[", "", "]"))),
  posted("decisions: 8 MiB of questions", "/v1/decisions", () =>
    decisions("a", fill(8 * mebibyte - 200, "{}")),
  ),
  posted("decisions: 4 MiB of evidence", "/v1/decisions", () =>
    decisions("word ".repeat((4 * mebibyte) / 5), '{"type":"predicate","instructions":"Is it long?"}'),
  ),
  posted(
    "decisions: four of 4,096 branches",
    "/v1/decisions",
    () =>
      decisions(
        "The parcel is late.",
        Array.from({ length: 4096 }, (_, at) => `{"type":"predicate","instructions":"${at}?"}`).join(),
      ),
    4,
  ),
]

const wrongSchemas: readonly (readonly [string, () => string])[] = [
  ["a cycle of anyOf", () => '{"anyOf":[{"$ref":"#"},{"const":1}]}'],
  ["a cycle of allOf", () => '{"allOf":[{"$ref":"#"}]}'],
  ["a malformed $ref", () => '{"$ref":"#/%E0%A4%A"}'],
  ["an enum of 300,000", () => `{"enum":[${Array.from({ length: 300_000 }, (_, at) => at).join()}]}`],
  ["a list of 200,000 types", () => `{"type":[${many(200_000, '"string"')}]}`],
  ["arrays nested 1,500 deep", () => nested(1500, '{"type":"array","items":', '{"type":"null"}', "}")],
  ["a schema nested 4,900 deep", () => nested(4900, '{"items":', "{}", "}")],
  [
    "a pattern of nested repeats",
    () => '{"type":"string","pattern":"^((((((a){0,2}){0,2}){0,2}){0,2}){0,2}){0,2}$"}',
  ],
  [
    "minItems 256 nested three times",
    () => nested(3, '{"type":"array","minItems":256,"maxItems":256,"items":', '{"type":"integer"}', "}"),
  ],
]

const schemas = wrongSchemas.map(([name, schema]) =>
  posted(`schema: ten times ${name}`, "/v1/chat/completions", () => withSchema(schema()), 10),
)

const floodFrames = 50_000

const socketFlood: Attack = {
  name: `socket: ${floodFrames} frames during a turn`,
  run: async ({ url, key }) => {
    const socket = new WebSocket(`${url.replace("http", "ws")}/v1/responses`, {
      headers: { authorization: `Bearer ${key}` },
    })
    await new Promise((resolve, reject) => socket.once("open", resolve).once("error", reject))
    const closed = new Promise<number>((resolve) => socket.once("close", resolve))
    socket.on("error", () => undefined)
    socket.send(JSON.stringify({ type: "response.create", model, input: "Go on.", max_output_tokens: 512 }))
    for (let sent = 0; sent < floodFrames && socket.readyState === WebSocket.OPEN; sent++) {
      socket.send("{}")
      if (sent % 1000 === 0) await wait(0)
    }
    const late = setTimeout(() => socket.terminate(), answerMsMax)
    const code = await closed
    clearTimeout(late)
    return `closed ${code}`
  },
}

const drippers = 200
const dripMs = 20_000

/** Sends one byte a second on many connections and counts those that the server ended. */
const dripping = (name: string, start: (key: string) => string): Attack => ({
  name,
  run: async ({ url, key }) => {
    const { hostname, port } = new URL(url)
    let ended = 0
    const sockets = Array.from({ length: drippers }, () => {
      const socket = connect(Number(port), hostname, () => socket.write(start(key)))
      socket.on("error", () => undefined).once("close", () => ended++)
      return socket
    })
    for (let passedMs = 0; passedMs < dripMs; passedMs += 1000) {
      await wait(1000)
      for (const socket of sockets) if (!socket.destroyed) socket.write("a")
    }
    const before = ended
    for (const socket of sockets) socket.destroy()
    return `${before} of ${drippers} were cut off in ${dripMs / 1000} s`
  },
})

const drips = [
  dripping(`${drippers} dripping heads`, () => "POST /v1/decisions HTTP/1.1\r\nhost: a\r\nx-a: "),
  dripping(
    `${drippers} dripping bodies`,
    (key) =>
      `POST /v1/decisions HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${key}\r\ncontent-type: application/json\r\ncontent-length: 100000\r\n\r\n{`,
  ),
]

const pipelined = 1_500

const unreadDocuments: Attack = {
  name: `${pipelined} pipelined /openapi.json that are not read, without a key`,
  run: async ({ url }) => {
    const { hostname, port } = new URL(url)
    const socket = connect(Number(port), hostname).on("error", () => undefined)
    socket.pause()
    socket.write(`GET /openapi.json HTTP/1.1\r\nhost: ${hostname}\r\n\r\n`.repeat(pipelined))
    await wait(heldMs)
    socket.destroy()
    return "not read"
  },
}

const heldMs = 3_000
const sentMsMax = 20_000
const heldBodies = 30

const heldLarge: Attack = {
  name: `${heldBodies} chat bodies of 31 of 32 MiB, then nothing`,
  body: () => "a".repeat(31 * mebibyte),
  run: async ({ url, key }, bytes) => {
    const { hostname, port } = new URL(url)
    const head =
      `POST /v1/chat/completions HTTP/1.1\r\nhost: ${hostname}\r\nauthorization: Bearer ${key}\r\n` +
      `content-type: application/json\r\ncontent-length: ${32 * mebibyte}\r\n\r\n`
    let refused = 0
    const sockets = Array.from({ length: heldBodies }, () =>
      connect(Number(port), hostname).on("error", () => undefined),
    )
    // Each is sent, refused or cut off before they are held: a server that reads slowly has not held them yet.
    const settled = sockets.map(async (socket) => {
      const { promise, resolve } = Promise.withResolvers<void>()
      socket.once("data", (part: Buffer) => {
        refused += Number(part.toString().startsWith("HTTP/1.1 503"))
        resolve()
      })
      socket.once("close", () => resolve())
      socket.write(head)
      socket.write(bytes, () => resolve())
      await promise
    })
    await Promise.race([Promise.all(settled), wait(sentMsMax)])
    await wait(heldMs)
    for (const socket of sockets) socket.destroy()
    return `${refused} of ${heldBodies} refused with 503`
  },
}

const unfinishedSockets = 60

/** A frame of 8 MiB, masked with zeros, without its last byte. */
function unfinishedFrame(): Buffer {
  const head = Buffer.from([0x81, 0xff, 0, 0, 0, 0, 0, 0x80, 0, 0, 0, 0, 0, 0])
  return Buffer.concat([head, Buffer.alloc(8 * mebibyte - 1, "a")])
}

const heldMessages: Attack = {
  name: `${unfinishedSockets} sockets with unfinished messages of 8 MiB`,
  run: async ({ url, key }) => {
    const frame = unfinishedFrame()
    const { hostname, port } = new URL(url)
    const head =
      `GET /v1/responses HTTP/1.1\r\nhost: ${hostname}\r\nauthorization: Bearer ${key}\r\n` +
      "upgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-version: 13\r\n" +
      "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    let refused = 0
    const sockets = Array.from({ length: unfinishedSockets }, () =>
      connect(Number(port), hostname).on("error", () => undefined),
    )
    const settled = sockets.map(async (socket) => {
      const { promise, resolve } = Promise.withResolvers<void>()
      socket.once("close", () => resolve())
      socket.write(head)
      socket.once("data", () => {
        socket.on("data", (part: Buffer) => (refused += Number(part.includes("over_capacity"))))
        socket.write(frame, () => resolve())
      })
      await promise
    })
    await Promise.race([Promise.all(settled), wait(sentMsMax)])
    await wait(heldMs)
    for (const socket of sockets) socket.destroy()
    return `${refused} of ${unfinishedSockets} refused with over_capacity`
  },
}

const guesses = 64

const signInFlood: Attack = {
  name: `${guesses} sign-ins at a time without a key`,
  run: async (target) => {
    const counts = new Map<string, number>()
    await Promise.all(
      Array.from({ length: guesses }, async (_, at) => {
        const guess = { email: `guess${at}@example.com`, password: "not this one either" }
        const body = Buffer.from(JSON.stringify(guess))
        const outcome = await post({ ...target, key: "" }, "/v1/session", body).catch(String)
        counts.set(outcome, (counts.get(outcome) ?? 0) + 1)
      }),
    )
    return [...counts].map(([outcome, count]) => `${count} x ${outcome}`).join(", ")
  },
}

/** Every document is another, so that none is found in a cache. */
const reranked = posted("rerank: 1,000 documents of 200 words", "/v1/rerank", () =>
  JSON.stringify({
    model: "umpire-decide",
    query: "Which parcel is late?",
    documents: Array.from({ length: 1000 }, (_, at) => `parcel ${at} is on its way `.repeat(34)),
  }),
)

export const attacks: readonly Attack[] = [
  ...bodies,
  ...schemas,
  reranked,
  unreadDocuments,
  heldLarge,
  heldMessages,
  signInFlood,
  socketFlood,
  ...drips,
]
