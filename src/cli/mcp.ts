/** `umpire mcp`: an MCP server on standard input and output, which hands messages to /mcp of a server and reads local files. */
import { createInterface } from "node:readline"
import { z } from "zod"
import { McpMessage, RpcError, mcpVersionHeader } from "../contract/mcp.ts"
import { type CliContext, type Command, text, valueOption } from "./command.ts"
import { labelLocalFile, localLabelTool } from "./mcp-files.ts"
import { serverOf, serverOptions } from "./server-options.ts"

/** More are read only once one of them is answered. */
const openMax = 16
const lineCharactersMax = 4 * 1024 * 1024

export const mcp: Command = {
  usage: ["umpire mcp", "claude mcp add umpire -- umpire mcp"],
  options: {
    url: valueOption(serverOptions.url.help),
    key: valueOption(serverOptions.key.help),
    root: valueOption("the directory whose files label_file may read (the working directory)"),
  },
  run: async (context) => {
    const { url, key } = serverOf(context)
    await new Bridge(context, new URL("/mcp", url), key).run()
    return 0
  },
}

/** What /mcp answers to a request. */
export type Ask = (method: string, params: unknown, signal: AbortSignal) => Promise<unknown>

const Answer = z.object({
  result: z.record(z.string(), z.unknown()).optional(),
  error: z.object({ code: z.int(), message: z.string(), data: z.unknown().optional() }).optional(),
})
const Listed = z.object({ tools: z.array(z.looseObject({ name: z.string() })) })

const serverErrorCode = -32_000
const parseErrorCode = -32_700

class Bridge {
  readonly #context: CliContext
  readonly #url: URL
  readonly #key: string
  readonly #open = new Map<string | number, AbortController>()
  #version: string | null = null

  constructor(context: CliContext, url: URL, key: string) {
    this.#context = context
    this.#url = url
    this.#key = key
  }

  /** Until standard input ends; requests that are open then are answered first. */
  async run(): Promise<void> {
    const running = new Set<Promise<void>>()
    for await (const line of createInterface({ input: this.#context.stdin, crlfDelay: Infinity })) {
      if (line.trim() === "") continue
      const message = readLine(line)
      if (!message) {
        this.#write({
          id: null,
          error: { code: parseErrorCode, message: "Cannot read the message: it is not JSON-RPC" },
        })
        continue
      }
      const handled = this.#handle(message)
      running.add(handled)
      void handled.finally(() => running.delete(handled))
      while (running.size >= openMax) await Promise.race(running)
    }
    await Promise.all(running)
  }

  async #handle({ id, method, params = {} }: McpMessage): Promise<void> {
    if (method === "notifications/cancelled") return this.#cancel(params["requestId"])
    if (id === undefined || method === undefined) return
    const cancelled = new AbortController()
    this.#open.set(id, cancelled)
    try {
      this.#write({ id, result: await this.#answer(method, params, cancelled.signal) })
    } catch (error) {
      // A cancelled request is not answered.
      if (!cancelled.signal.aborted) this.#write({ id, error: errorOf(error, this.#url.origin) })
    } finally {
      this.#open.delete(id)
    }
  }

  #cancel(id: unknown): void {
    if (typeof id === "string" || typeof id === "number")
      this.#open.get(id)?.abort(new RpcError(serverErrorCode, "The request was cancelled"))
  }

  async #answer(method: string, params: Record<string, unknown>, signal: AbortSignal): Promise<unknown> {
    if (method === "tools/call" && params["name"] === localLabelTool.name)
      return await labelLocalFile(this.#root, params["arguments"] ?? {}, { ask: this.#ask, signal })
    const result = await this.#ask(method, params, signal)
    if (method === "initialize")
      this.#version = z.object({ protocolVersion: z.string() }).parse(result).protocolVersion
    if (method !== "tools/list") return result
    const { tools, ...rest } = Listed.parse(result)
    return {
      ...rest,
      tools: tools.map((tool) => (tool.name === localLabelTool.name ? localLabelTool : tool)),
    }
  }

  get #root(): string {
    return text(this.#context, "root") ?? this.#context.workingDirectory
  }

  readonly #ask: Ask = async (method, params, signal) => {
    const response = await fetch(this.#url, {
      method: "POST",
      headers: {
        authorization: `Bearer ${this.#key}`,
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        ...(this.#version === null ? {} : { [mcpVersionHeader]: this.#version }),
      },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
      signal,
    })
    const body: unknown = await response.json().catch(() => null)
    if (!response.ok)
      throw new RpcError(serverErrorCode, sentenceOf(body) ?? `The server answered ${response.status}`)
    const { result, error } = Answer.parse(body)
    if (error) throw new RpcError(error.code, error.message, error.data)
    return result ?? {}
  }

  #write(message: Record<string, unknown>): void {
    this.#context.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`)
  }
}

function readLine(line: string): McpMessage | null {
  if (line.length > lineCharactersMax) return null
  try {
    return McpMessage.parse(JSON.parse(line))
  } catch {
    return null
  }
}

function sentenceOf(body: unknown): string | undefined {
  return z.object({ error: z.object({ message: z.string() }) }).safeParse(body).data?.error.message
}

function errorOf(error: unknown, url: string): { code: number; message: string; data?: unknown } {
  if (error instanceof RpcError)
    return {
      code: error.code,
      message: error.message,
      ...(error.details === undefined ? {} : { data: error.details }),
    }
  const message =
    error instanceof TypeError
      ? `Cannot reach ${url}: is the server running? umpire serve starts it; --url or UMPIRE_URL names another`
      : "Cannot answer"
  return { code: serverErrorCode, message }
}
