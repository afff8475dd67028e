/** A ClickHouse server small enough for tests: its HTTP interface over chDB, in a process of its own. */
import { fork } from "node:child_process"

export async function startClickhouseOverChdb(
  directory: string,
  nodePath?: string,
): Promise<{ url: string; close(): Promise<void> }> {
  const child = fork(new URL("./programs/clickhouse-over-chdb.ts", import.meta.url), [directory], {
    stdio: ["ignore", "ignore", "inherit", "ipc"],
    ...(nodePath === undefined ? {} : { execPath: nodePath, execArgv: [] }),
  })
  const url = await new Promise<string>((resolve, reject) => {
    child.once("message", (address: string) => resolve(address))
    child.once("exit", (code) => reject(new Error(`The server did not start: it ended with ${code}`)))
  })
  return {
    url,
    close: async () => {
      const ended = new Promise((resolve) => child.once("exit", resolve))
      child.kill("SIGKILL")
      await ended
    },
  }
}
