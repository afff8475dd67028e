/** Files that the arguments name: what cannot be read or written is refused with the reason. */
import { constants } from "node:fs"
import { access, stat } from "node:fs/promises"
import { dirname, resolve } from "node:path"
import { type CliContext, UsageError } from "./command.ts"

const reasons: Readonly<Record<string, string>> = {
  ENOENT: "there is no such file",
  ENOTDIR: "there is no such file",
  EISDIR: "it is a directory",
  EACCES: "permission denied",
  EPERM: "permission denied",
  EROFS: "the file system is read-only",
}

function reasonOf(error: unknown): string {
  const code = error instanceof Error && "code" in error ? String(error.code) : ""
  return reasons[code] ?? (code || "it cannot be opened")
}

/** What a failed read of a file is answered with: `readFile(path).catch(unreadable(shown))`. */
export const unreadable =
  (shown: string, suffix = "") =>
  (error: unknown): never => {
    throw new UsageError(`cannot read ${shown}: ${reasonOf(error)}${suffix}`)
  }

/** Before anything is asked: answers that cannot be written would be lost. */
export async function refuseUnwritable({ workingDirectory }: CliContext, out: string): Promise<void> {
  const path = resolve(workingDirectory, out)
  const refuse = (why: string): never => {
    throw new UsageError(`cannot write ${out}: ${why}`)
  }
  const [file, directory] = await Promise.all([path, dirname(path)].map(async (one) => await kindOf(one)))
  if (file === "directory") refuse("it is a directory")
  if (directory !== "directory") refuse(`there is no directory ${dirname(out)}`)
  await access(dirname(path), constants.W_OK).catch((error: unknown) => refuse(reasonOf(error)))
}

async function kindOf(path: string): Promise<"file" | "directory" | null> {
  return await stat(path).then(
    (found) => (found.isDirectory() ? "directory" : "file"),
    () => null,
  )
}
