/** Images and files over chat, Responses and Messages: they reach workers that read them, and no other. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { type TestServer, startServer } from "./server.ts"
import { type Upstream, startUpstream } from "./upstream.ts"

let server: TestServer
let upstream: Upstream
let directory: string
beforeAll(async () => {
  upstream = await startUpstream(() => ({ text: "A cat." }))
  directory = mkdtempSync(join(tmpdir(), "umpire-images-"))
  const file = join(directory, "umpire.yaml")
  const far = { context_tokens_max: 32_768, workers: [{ url: upstream.url, dialect: "openai" }] }
  const input_modalities = ["text", "image", "file"]
  const models = [
    { sku: "blind", ...far },
    { sku: "seeing", ...far, input_modalities },
    { sku: "fetching", ...far, input_modalities, fetches_urls: true },
    { sku: "either", fallback: ["blind", "seeing"] },
  ]
  writeFileSync(file, JSON.stringify({ models }))
  server = await startServer({ env: { UMPIRE_CONFIG: file } })
})
afterAll(async () => {
  await server.stop()
  await upstream.close()
  rmSync(directory, { recursive: true })
})

const cat = `data:image/png;base64,${Buffer.from("a cat").toString("base64")}`
const pdf = `data:application/pdf;base64,${Buffer.from("%PDF-1.7 of nothing").toString("base64")}`
const note = `data:text/plain;base64,${Buffer.from("Grüße aus der Datei").toString("base64")}`
const address = "https://images.example/cat.png"

const wires = {
  chat: {
    path: "/v1/chat/completions",
    image: (url: string) => ({ type: "image_url", image_url: { url } }),
    file: (file_data: string) => ({ type: "file", file: { file_data, filename: "a" } }),
    text: (text: string) => ({ type: "text", text }),
    body: (content: object[]) => ({ messages: [{ role: "user", content }] }),
  },
  responses: {
    path: "/v1/responses",
    image: (image_url: string) => ({ type: "input_image", image_url }),
    file: (file_data: string) => ({ type: "input_file", file_data, filename: "a" }),
    text: (text: string) => ({ type: "input_text", text }),
    body: (content: object[]) => ({ input: [{ role: "user", content }] }),
  },
  messages: {
    path: "/v1/messages",
    image: (url: string) => ({
      type: "image",
      source: url.startsWith("https") ? { type: "url", url } : base64Of(url),
    }),
    file: (url: string) => ({ type: "document", title: "a", source: base64Of(url) }),
    text: (text: string) => ({ type: "text", text }),
    body: (content: object[]) => ({ max_tokens: 9, messages: [{ role: "user", content }] }),
  },
} as const

function base64Of(url: string): object {
  const [, media_type, data] = /^data:(.*);base64,(.*)$/.exec(url) ?? []
  return { type: "base64", media_type, data }
}

const received = (): unknown => upstream.requests.at(-1)?.messages.at(-1)?.content

describe.each(Object.entries(wires))("%s", (_, wire) => {
  const send = async (model: string, ...content: object[]): Promise<Response> =>
    await server.post(wire.path, { model, ...wire.body(content) }, { "anthropic-version": "2023-06-01" })
  test("an image stands where it stood between texts", async () => {
    const response = await send("seeing", wire.text("This"), wire.image(cat), wire.text("or that?"))
    expect(response.status).toBe(200)
    expect(received()).toEqual([
      { type: "text", text: "This" },
      { type: "image_url", image_url: { url: cat } },
      { type: "text", text: expect.stringMatching(/^\n?or that\?$/) as string },
    ])
  })

  test("the text of a file is read by every model; what is no text goes to those that read files", async () => {
    expect((await send("blind", wire.file(note))).status).toBe(200)
    expect(received()).toBe("Grüße aus der Datei")
    expect((await send("seeing", wire.file(pdf))).status).toBe(200)
    expect(received()).toEqual([{ type: "file", file: { file_data: pdf, filename: "a" } }])
  })

  test.each([
    ["an image to a model that does not see", "blind", cat, /blind does not read images/],
    ["an image to a model on the server", "umpire-chat", cat, /does not read images/],
    ["an address to workers that fetch nothing", "seeing", address, /fetch nothing/],
    ["an address without TLS", "fetching", "http://169.254.169.254/", /data: URL/],
    ["an address of a file on the worker", "fetching", "file:///etc/passwd", /data: URL/],
  ])("%s is refused with the reason", async (name, model, url, reason) => {
    // Messages has no other form for what is not https.
    if (wire === wires.messages && !/^(https|data):/.test(url)) return
    const before = upstream.requests.length
    const response = await send(model, wire.image(url))
    const { error } = (await response.json()) as { error: { code: string; message: string } }
    expect([name, response.status, error.code]).toEqual([name, 400, "invalid_request"])
    expect(error.message).toMatch(reason)
    expect(upstream.requests).toHaveLength(before)
  })

  test("a file that is no text is refused by a model that reads none; an address passes to workers that fetch", async () => {
    expect((await send("blind", wire.file(pdf))).status).toBe(400)
    expect((await send("fetching", wire.image(address))).status).toBe(200)
    expect(received()).toEqual([{ type: "image_url", image_url: { url: address } }])
  })

  test("of the models that a name stands for, one that sees answers", async () => {
    const response = await send("either", wire.image(cat))
    expect([response.status, response.headers.get("x-umpire-stages")]).toEqual([200, "seeing"])
  })
})

test("what a tool shows follows its results as a message of the user", async () => {
  const calls = ["a", "b"].map((call_id) => ({
    type: "function_call",
    call_id,
    name: "look",
    arguments: "{}",
  }))
  const output = [
    { type: "input_text", text: "see" },
    { type: "input_image", image_url: cat },
  ]
  const results = ["a", "b"].map((call_id) => ({ type: "function_call_output", call_id, output }))
  const input = [{ role: "user", content: "Look." }, ...calls, ...results]
  expect((await server.post("/v1/responses", { model: "seeing", input })).status).toBe(200)
  const image = { type: "image_url", image_url: { url: cat } }
  expect(upstream.requests.at(-1)?.messages.slice(2)).toEqual([
    { role: "tool", tool_call_id: "a", content: "see" },
    { role: "tool", tool_call_id: "b", content: "see" },
    { role: "user", content: [image, image] },
  ])
})

test("the list of an organization's models says what each reads", async () => {
  const authorization = { authorization: `Bearer ${server.key}` }
  const get = async (
    path: string,
  ): Promise<{ data: { id: string; model_sku: string; input_modalities: string[] }[] }> =>
    (await (await fetch(server.url + path, { headers: authorization })).json()) as never
  const [org] = (await get("/v1/organizations")).data
  const models = (await get(`/v1/organizations/${org?.id}/models`)).data
  const reads = (sku: string) => models.find(({ model_sku }) => model_sku === sku)?.input_modalities
  expect([reads("blind"), reads("seeing")]).toEqual([["text"], ["text", "image", "file"]])
})
