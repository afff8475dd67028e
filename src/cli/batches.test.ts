import { once } from "node:events"
import { type ServerResponse, createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { PassThrough } from "node:stream"
import { text } from "node:stream/consumers"
import { expect, test } from "vitest"
import { batches } from "./batches.ts"

type Answer = (response: ServerResponse) => void

const batch = (status: string) => ({
  id: "batch_1",
  endpoint: "/v1/decisions",
  status,
  request_counts: { completed: 1, failed: 0, total: 1 },
  errors: null,
  expires_at: 1,
})

function send(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body))
}

/** Answers what `answers` has for a method and path, one after the other. */
async function run(answers: Record<string, Answer[]>) {
  const server = createServer((request, response) => {
    request.resume().once("end", () => answers[`${request.method} ${request.url}`]?.shift()?.(response))
  }).listen(0, "127.0.0.1")
  await once(server, "listening")
  const [stdout, stderr] = [new PassThrough(), new PassThrough()]
  const exit: unknown = await batches
    .run({
      positionals: ["create", import.meta.filename],
      values: { wait: true, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, key: "k" },
      environment: {},
      workingDirectory: ".",
      stdout,
      stderr,
      stdin: new PassThrough(),
    })
    .catch((error: unknown) => error)
  server.close()
  server.closeAllConnections()
  stdout.end()
  stderr.end()
  return { exit, stdout: await text(stdout), stderr: await text(stderr) }
}

const waitWith = (looks: Answer[]) => ({
  "POST /v1/files": [(response: ServerResponse) => send(response, 200, { id: "file_1" })],
  "POST /v1/batches": [(response: ServerResponse) => send(response, 200, batch("validating"))],
  "GET /v1/batches/batch_1": looks,
})

test("create --wait says the id at once, and outlasts looks that fail for the moment", async () => {
  const looks: Answer[] = [
    (response) => void response.writeHead(502).end("<html>"),
    (response) => void response.destroy(),
    (response) => send(response, 429, { error: { message: "Too many" } }),
    (response) => send(response, 200, batch("completed")),
  ]
  const ran = await run(waitWith(looks))
  expect(ran).toMatchObject({ exit: 0, stderr: "batch_1\n" })
  expect(ran.stdout).toContain("batch_1  /v1/decisions  completed")
})

test.each([
  ["completed", { output_file_id: "file_2" }, true],
  ["expired", { error_file_id: "file_3" }, true],
  ["failed", { output_file_id: null, error_file_id: null }, false],
])("a batch that is %s with %j points to results where there are some", async (status, files, pointed) => {
  const looks: Answer[] = [(response) => send(response, 200, { ...batch(status), ...files })]
  const { stdout } = await run(waitWith(looks))
  expect(stdout.includes("umpire batches results batch_1")).toBe(pointed)
})

test("a look that is refused ends the wait, and the id has been said", async () => {
  const looks: Answer[] = [(response) => send(response, 401, { error: { message: "No such key" } })]
  const ran = await run(waitWith(looks))
  expect(ran).toMatchObject({ exit: { status: 401 }, stderr: "batch_1\n" })
})

test("a refusal that is not JSON is told by its status", async () => {
  const ran = await run({ "POST /v1/files": [(response) => void response.writeHead(413).end("<html>")] })
  expect(ran.exit).toMatchObject({ name: "ClientError", message: "The server answered 413" })
})
