/** A receiver of webhooks over real HTTP that behaves as its paths say, and remembers what it was sent. */
import { type IncomingHttpHeaders, type ServerResponse, createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { text } from "node:stream/consumers"

export interface Received {
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

type Answer = (response: ServerResponse, request: Received) => void

export interface Receiver {
  readonly url: string
  readonly received: readonly Received[]
  /** From now on, requests to the path are answered so. */
  behave(path: string, answer: Answer): void
  at(path: string): readonly Received[]
  close(): Promise<void>
}

export const answerWith =
  (status: number, headers: Record<string, string> = {}): Answer =>
  (response) =>
    response.writeHead(status, headers).end()

export async function startReceiver(): Promise<Receiver> {
  const received: Received[] = []
  const answers = new Map<string, Answer>()
  const server = createServer((request, response) => {
    void text(request).then((body) => {
      const one = { path: request.url ?? "", headers: request.headers, body }
      received.push(one)
      const answer = answers.get(one.path) ?? answerWith(204)
      answer(response, one)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    received,
    behave: (path, answer) => void answers.set(path, answer),
    at: (path) => received.filter((one) => one.path === path),
    close: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
