/** Programs of Debian that tests run. A missing one is fetched or is an error: a test that cannot run must not look like one that passed. */
import { spawnSync } from "node:child_process"
import { existsSync } from "node:fs"
import { join } from "node:path"
import { installMs, keptFolder } from "./run-folder.ts"

/**
 * The folder of the files of packages, unpacked and not installed: nothing of them starts by itself, and nothing of the
 * machine changes. Test files that run at once take turns.
 */
export function unpackDebian(...names: readonly [string, ...string[]]): string {
  const folder = join(keptFolder(), `umpire-debian-${names.join("+")}`)
  const all = names.join(" ")
  const files = join(folder, "files")
  if (existsSync(files)) return files
  const steps = [
    `mkdir -p ${folder} && cd ${folder} && [ -d files ] && exit 0`,
    `apt-get download -qq ${all} || { apt-get update -qq && apt-get download -qq ${all}; }`,
    "rm -rf unpacked && for one in ./*.deb; do dpkg-deb -x $one unpacked; done; rm ./*.deb && mv unpacked files",
  ].join("\n")
  const { status, stderr, error } = spawnSync("flock", [`${folder}.lock`, "sh", "-c", `set -e\n${steps}`], {
    stdio: ["ignore", "ignore", "pipe"],
    encoding: "utf8",
    timeout: installMs,
  })
  if (existsSync(files)) return files
  const said = stderr?.trim().split("\n").at(-1) ?? ""
  throw new Error(
    `Cannot fetch Debian's ${all}: apt-get ended with ${status ?? error?.message ?? "a signal"}: ${said}`,
  )
}
