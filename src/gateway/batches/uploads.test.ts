import { expect, test } from "vitest"
import { checkReachable, receiveUpload } from "./files.ts"

const storage = { stage: () => Promise.reject(new Error("no file is stored here")) }
const part = (name: string): string => `--b\r\ncontent-disposition: form-data; name="${name}"\r\n\r\n1\r\n`
const file = '--b\r\ncontent-disposition: form-data; name="file"; filename="x"\r\n\r\nabc\r\n'

test.each([
  ["100,000 fields", part("purpose"), 100_000],
  ["100,000 files of another name", file.replace('"file"', '"other"'), 100_000],
])("a form of %s is read no further than its first limit", async (_, text, count) => {
  let taken = 0
  const perPiece = 500
  async function* pieces(): AsyncGenerator<Uint8Array> {
    for (let sent = 0; sent < count; sent += perPiece) {
      taken++
      yield Buffer.from(text.repeat(perPiece))
    }
  }
  const body = { contentType: "multipart/form-data; boundary=b", contentLength: null, pieces: pieces() }
  await expect(receiveUpload(body, storage, 1024)).rejects.toMatchObject({
    code: "invalid_request",
    message: expect.stringContaining("more than") as string,
  })
  // What a stream reads ahead.
  expect(taken).toBeLessThan(20)
})

test("where a file of another gateway lies is said to the operator, not to the one who asks for it", () => {
  const told: unknown[] = []
  const warn = (...line: unknown[]): void => void told.push(line)
  const at = { storage: { id: "here" }, log: { warn } }
  checkReachable(at, { id: "file_1", storage: "here" })
  expect(told).toEqual([])
  expect(() => checkReachable(at, { id: "file_1", storage: "elsewhere" })).toThrow(
    expect.objectContaining({
      code: "not_ready",
      message: "Cannot read the file at the moment: try again later",
    }),
  )
  expect(told).toEqual([
    [{ file: "file_1", storage: "elsewhere" }, expect.stringContaining("another gateway")],
  ])
})
