/** The state file of `umpire label`: one line for each answer, appended as it comes, so that a killed run can go on. */
import { type FileHandle, open, rm } from "node:fs/promises"
import { createIds } from "../base/ids.ts"
import { UsageError } from "./command.ts"
import type { LabelAnswer } from "./label-answers.ts"

/** The first line: which run it is, and what is asked. */
interface Head {
  readonly run: string
  readonly asked: string
}

/** `k` is the hash of the text, `t` its tokens, `a` the answers, `e` why there are none. */
export type StateLine =
  | { readonly k: string; readonly t: number; readonly a: readonly LabelAnswer[] }
  | { readonly k: string; readonly e: string }

const headBytesMax = 4096
const tailBytes = 1024 * 1024

export class LabelState {
  /** The same for every start of one run: idempotency keys begin with it. */
  readonly run: string
  /** Nothing was answered before. */
  readonly isNew: boolean
  readonly #file: FileHandle
  readonly #path: string
  #waiting = ""
  #writing: Promise<void> | null = null
  /** Of whole lines. */
  #bytes = 0
  #failure: unknown = null

  private constructor(head: Head | null, path: string, file: FileHandle) {
    this.run = head?.run ?? createIds().next("job")
    this.isNew = head === null
    this.#path = path
    this.#file = file
  }

  /** `asked` stands for model and questions: a state of others is refused. */
  static async open(path: string, shown: string, asked: string): Promise<LabelState> {
    const file = await open(path, "a+", 0o600)
    try {
      await cutBrokenLine(file)
      const head = await readHead(file)
      if (head && head.asked !== asked)
        throw new UsageError(
          `${shown} is the state of a run with other questions: repeat that command, or begin again with --restart`,
        )
      const state = new LabelState(head, path, file)
      if (!head) await file.appendFile(`${JSON.stringify({ run: state.run, asked } satisfies Head)}\n`)
      state.#bytes = (await file.stat()).size
      return state
    } catch (error) {
      await file.close()
      throw error
    }
  }

  /** Resolves when the line is with the operating system: killing this process does not lose it. */
  async append(line: StateLine): Promise<void> {
    if (this.#failure !== null) throw this.#failure
    this.#waiting += `${JSON.stringify(line)}\n`
    while (this.#waiting !== "" || this.#writing) await (this.#writing ??= this.#write())
  }

  async #write(): Promise<void> {
    const lines = this.#waiting
    this.#waiting = ""
    try {
      await this.#file.appendFile(lines)
      this.#bytes += Buffer.byteLength(lines)
    } catch (error) {
      // A full disk takes half of a line, and nothing may follow that.
      this.#failure = error
      await this.#file.truncate(this.#bytes).catch(() => undefined)
      throw error
    } finally {
      this.#writing = null
    }
  }

  async close(): Promise<void> {
    await this.#file.close()
  }

  /** Nothing is left to do. */
  async remove(): Promise<void> {
    await rm(this.#path, { force: true })
  }
}

async function readHead(file: FileHandle): Promise<Head | null> {
  const { buffer, bytesRead } = await file.read(Buffer.alloc(headBytesMax), 0, headBytesMax, 0)
  const [line = ""] = buffer.toString("utf8", 0, bytesRead).split("\n")
  return line === "" ? null : JSON.parse(line)
}

/** A machine that lost its power may have written half of the last line. */
async function cutBrokenLine(file: FileHandle): Promise<void> {
  const { size } = await file.stat()
  const start = Math.max(0, size - tailBytes)
  const { buffer, bytesRead } = await file.read(Buffer.alloc(tailBytes), 0, tailBytes, start)
  const end = buffer.subarray(0, bytesRead).lastIndexOf("\n")
  if (size > 0 && start + end + 1 < size) await file.truncate(start + end + 1)
}
