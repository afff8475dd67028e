/** Unpacks the new cluster that the package brings, so that a first start need not create one. */
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { gunzipSync } from "node:zlib"

/** Of the tar format: a header takes one block, and content is filled up to whole ones. */
const blockBytes = 512

/** Unpacked aside and renamed, so that an interrupted start leaves no half of a cluster. */
export function unpackCluster(dump: string, directory: string): void {
  const partial = `${directory}.partial`
  rmSync(partial, { recursive: true, force: true })
  for (const { path, isFolder, content } of entriesOf(gunzipSync(readFileSync(dump)))) {
    const target = join(partial, path)
    mkdirSync(isFolder ? target : dirname(target), { recursive: true, mode: 0o700 })
    if (!isFolder) writeFileSync(target, content, { mode: 0o600 })
  }
  renameSync(partial, directory)
}

interface Entry {
  readonly path: string
  readonly isFolder: boolean
  readonly content: Uint8Array
}

function* entriesOf(tar: Buffer): Generator<Entry> {
  const field = (from: number, length: number): string =>
    tar.toString("latin1", from, from + length).replace(/\0.*$/s, "")
  let at = 0
  // Empty blocks end the file.
  while (at + blockBytes <= tar.length && tar[at] !== 0) {
    const bytes = Number.parseInt(field(at + 124, 12), 8)
    const begin = at + blockBytes
    yield {
      path: field(at, 100),
      isFolder: field(at + 156, 1) === "5",
      content: tar.subarray(begin, begin + bytes),
    }
    at = begin + Math.ceil(bytes / blockBytes) * blockBytes
  }
}
