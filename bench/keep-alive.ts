/** Load over raw keep-alive connections: a client that costs little, and the same whomever it asks. */
import { once } from "node:events"
import { type Socket, connect } from "node:net"

export interface Measured {
  readonly perSecond: number[]
  readonly latenciesMs: number[]
}

/** A request of JSON as it goes over the wire. */
export function requestBytes(path: string, headers: Readonly<Record<string, string>>, body: string): Buffer {
  const head = [
    `POST ${path} HTTP/1.1`,
    "host: 127.0.0.1",
    "content-type: application/json",
    "user-agent: bench",
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    `content-length: ${Buffer.byteLength(body)}`,
  ]
  return Buffer.from(`${head.join("\r\n")}\r\n\r\n${body}`)
}

const headEnd = "\r\n\r\n"
const lastChunk = "\r\n0\r\n\r\n"

/** Asks one thing at a time, and reads no more of an answer than its status and where it ends. */
export class Connection {
  readonly #socket: Socket
  #text = ""
  #answered: (status: number) => void = () => undefined
  #broken: (error: Error) => void = () => undefined

  private constructor(socket: Socket) {
    this.#socket = socket
    socket.setNoDelay(true).setEncoding("latin1")
    socket.on("data", (text: string) => this.#take(text))
    socket.on("close", () => this.#broken(new Error("The server closed the connection")))
  }

  static async open(url: URL): Promise<Connection> {
    const socket = connect(Number(url.port), url.hostname)
    await once(socket, "connect")
    return new Connection(socket)
  }

  ask(bytes: Buffer): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#answered = resolve
      this.#broken = reject
      this.#socket.write(bytes)
    })
  }

  close(): void {
    this.#socket.destroy()
  }

  #take(text: string): void {
    this.#text += text
    const end = this.#text.indexOf(headEnd)
    if (end < 0 || !this.#isWhole(end)) return
    const status = Number(this.#text.slice("HTTP/1.1 ".length, "HTTP/1.1 200".length))
    this.#text = ""
    this.#answered(status)
  }

  #isWhole(end: number): boolean {
    const length = /^content-length: *(\d+)/im.exec(this.#text.slice(0, end))?.[1]
    if (length !== undefined) return this.#text.length >= end + headEnd.length + Number(length)
    return this.#text.endsWith(lastChunk)
  }
}

/** Each client sends its next request when it has its answer. */
export async function load(url: URL, request: Buffer, clients: number, forMs: number): Promise<Measured> {
  const open = await Promise.all(Array.from({ length: clients }, () => Connection.open(url)))
  const latenciesMs: number[] = []
  const startedMs = performance.now()
  const work = async (connection: Connection): Promise<void> => {
    for (let sentMs = startedMs; sentMs - startedMs < forMs;) {
      const status = await connection.ask(request)
      if (status !== 200) throw new Error(`${url.href} answered ${status}`)
      const nowMs = performance.now()
      latenciesMs.push(nowMs - sentMs)
      sentMs = nowMs
    }
  }
  await Promise.all(open.map(work))
  const perSecond = [(latenciesMs.length * 1000) / (performance.now() - startedMs)]
  for (const connection of open) connection.close()
  return { perSecond, latenciesMs }
}

export function at(list: readonly number[], share: number): number {
  const sorted = list.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? Number.NaN
}

export const median = (list: readonly number[]): number => at(list, 0.5)
