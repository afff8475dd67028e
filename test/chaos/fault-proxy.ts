/** A TCP proxy before a worker that can be told to misbehave: the network between a gateway and its workers. */
import { type AddressInfo, type Server, type Socket, connect, createServer } from "node:net"

type ProxyMode =
  | "pass"
  /** Connections are refused as soon as they are made, and those that exist are cut. */
  | "refuse"
  /** Everything arrives late. */
  | "slow"
  /** Bytes of answers are changed on their way. */
  | "corrupt"
  /** Connections are taken, and nothing arrives in either direction. */
  | "partition"

const slowMs = 300
/** Past the head of a short answer, inside its body. */
const corruptAfterBytes = 20

export class FaultProxy {
  readonly #server: Server
  readonly #pairs = new Set<readonly [Socket, Socket]>()
  #target: number
  #mode: ProxyMode = "pass"

  private constructor(target: number) {
    this.#target = target
    this.#server = createServer((client) => this.#join(client))
  }

  static async start(target: number): Promise<FaultProxy> {
    const proxy = new FaultProxy(target)
    await new Promise<void>((resolve) => proxy.#server.listen(0, "127.0.0.1", resolve))
    return proxy
  }

  get url(): string {
    // True for a TCP server that listens.
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  /** A worker that was started again has another port. */
  aim(target: number): void {
    this.#target = target
  }

  set(mode: ProxyMode): void {
    this.#mode = mode
    if (mode !== "refuse") return
    for (const pair of this.#pairs) for (const socket of pair) socket.resetAndDestroy()
  }

  async close(): Promise<void> {
    for (const pair of this.#pairs) for (const socket of pair) socket.destroy()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  #join(client: Socket): void {
    if (this.#mode === "refuse") {
      client.resetAndDestroy()
      return
    }
    const worker = connect(this.#target, "127.0.0.1")
    const pair = [client, worker] as const
    this.#pairs.add(pair)
    const end = (): void => {
      this.#pairs.delete(pair)
      client.destroy()
      worker.destroy()
    }
    for (const socket of pair) socket.on("error", end).on("close", end)
    client.on("data", (bytes) => this.#carry(worker, bytes))
    worker.on("data", (bytes) => this.#carry(client, this.#mode === "corrupt" ? corrupted(bytes) : bytes))
  }

  #carry(to: Socket, bytes: Buffer): void {
    if (this.#mode === "partition" || to.destroyed) return
    if (this.#mode === "slow") setTimeout(() => to.writable && to.write(bytes), slowMs)
    else to.write(bytes)
  }
}

/** Changes one digit or letter near the end, where the body of a short answer is. */
function corrupted(bytes: Buffer): Buffer {
  if (bytes.length <= corruptAfterBytes) return bytes
  const copy = Buffer.from(bytes)
  const at = copy.length - 4
  copy[at] = copy[at] === 0x31 ? 0x32 : 0x31
  return copy
}
