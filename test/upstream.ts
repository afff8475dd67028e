/** A model provider of the test's own: speaks OpenAI's chat protocol, and answers what the test's function says, in pieces. */
import { type IncomingMessage, type ServerResponse, createServer } from "node:http"
import type { AddressInfo } from "node:net"

export interface UpstreamMessage {
  readonly role: string
  readonly content?: string | null
  readonly tool_call_id?: string
  readonly tool_calls?: readonly { readonly id: string; readonly function: UpstreamCall }[]
}

interface UpstreamCall {
  readonly name: string
  readonly arguments: string
}

export interface UpstreamRequest {
  readonly model: string
  readonly messages: readonly UpstreamMessage[]
  readonly tools?: readonly { readonly function: { readonly name: string; readonly parameters?: unknown } }[]
  readonly [field: string]: unknown
}

/** What it says to one request: thoughts, then words, then calls. */
export interface UpstreamAnswer {
  readonly reasoning?: string
  readonly text?: string
  readonly calls?: readonly UpstreamCall[]
  readonly finish?: "stop" | "length" | "content_filter"
  /** Refuses the request with this status. */
  readonly status?: number
  /** Ends the stream after so many pieces, without saying how the answer ended. */
  readonly breaksAfter?: number
}

export interface Upstream {
  readonly url: string
  /** Every request so far. */
  readonly requests: UpstreamRequest[]
  close(): Promise<void>
}

/** Characters in a piece: no word comes whole. */
const pieceCharacters = 5
export const upstreamUsage = { input: 120, output: 17 }

export async function startUpstream(answer: (request: UpstreamRequest) => UpstreamAnswer): Promise<Upstream> {
  const requests: UpstreamRequest[] = []
  const server = createServer((request, response) => {
    void serve(request, response, (body) => {
      requests.push(body)
      return answer(body)
    }).catch(() => response.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  // A server that listens on a port has an address with a port.
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}/v1`,
    requests,
    close: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

async function serve(
  request: IncomingMessage,
  response: ServerResponse,
  answer: (body: UpstreamRequest) => UpstreamAnswer,
): Promise<void> {
  const chunks: Buffer[] = []
  for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk)
  if (request.method === "GET")
    return void response.writeHead(200, { "content-type": "application/json" }).end("{}")
  const said = answer(JSON.parse(Buffer.concat(chunks).toString()) as UpstreamRequest)
  if (said.status !== undefined) return void response.writeHead(said.status).end("{}")
  response.writeHead(200, { "content-type": "text/event-stream" })
  let sent = 0
  for (const event of events(said)) {
    if (sent++ === said.breaksAfter) return void response.end()
    response.write(`data: ${JSON.stringify(event)}\n\n`)
  }
  response.end("data: [DONE]\n\n")
}

function* events({ reasoning = "", text = "", calls = [], finish }: UpstreamAnswer): Generator {
  for (const piece of pieces(reasoning)) yield delta({ reasoning_content: piece })
  for (const piece of pieces(text)) yield delta({ content: piece })
  for (const [index, call] of calls.entries()) {
    const id = `up_${index}`
    yield delta({
      tool_calls: [{ index, id, type: "function", function: { name: call.name, arguments: "" } }],
    })
    for (const piece of pieces(call.arguments))
      yield delta({ tool_calls: [{ index, function: { arguments: piece } }] })
  }
  const reason = finish ?? (calls.length > 0 ? "tool_calls" : "stop")
  yield { choices: [{ index: 0, delta: {}, finish_reason: reason }] }
  yield {
    choices: [],
    usage: { prompt_tokens: upstreamUsage.input, completion_tokens: upstreamUsage.output },
  }
}

const delta = (value: Record<string, unknown>): unknown => ({
  choices: [{ index: 0, delta: value, finish_reason: null }],
})

function pieces(text: string): string[] {
  return Array.from({ length: Math.ceil(text.length / pieceCharacters) }, (_, index) =>
    text.slice(index * pieceCharacters, (index + 1) * pieceCharacters),
  )
}
