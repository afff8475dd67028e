/** A ClickHouse server small enough for tests: its HTTP interface over chDB, in a process of its own. */
import { fork } from "node:child_process"
import { testPackage } from "./test-packages.ts"

export async function startClickhouseOverChdb(
  directory: string,
): Promise<{ url: string; close(): Promise<void> }> {
  const chdb = await testPackage("chdb", "3.4.0")
  const child = fork(new URL("./programs/clickhouse-over-chdb.ts", import.meta.url), [directory, chdb], {
    stdio: ["ignore", "ignore", "inherit", "ipc"],
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
