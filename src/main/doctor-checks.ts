/** What `umpire doctor` looks at. */
import { accessSync, constants, existsSync, readFileSync } from "node:fs"
import { statfs } from "node:fs/promises"
import { availableParallelism, freemem, totalmem } from "node:os"
import { dirname, join } from "node:path"
import { hasCudaProvider } from "../base/cuda-provider.ts"
import { loadConfig } from "../base/config.ts"
import type { Config } from "../base/config-schema.ts"
import type { CliContext } from "../cli/command.ts"
import type { Finding } from "../cli/doctor.ts"
import { openLibrary } from "../engine/generate/local-model.ts"
import { operatorAddress } from "../server/operator-socket.ts"
import { checkPort } from "../server/port.ts"
import { migrationStatus } from "../store/migrate.ts"
import { openDatabase } from "../store/open.ts"
import { connectOperator } from "../cli/operator.ts"
import { mailSenderOf } from "./alerts.ts"
import { catalogOptions, loadCatalog } from "./catalog.ts"
import { version } from "./package-files.ts"
import { plural } from "../base/plural.ts"

const gibibyte = 1024 ** 3
/** As `engines` in package.json. */
const nodeMin = [22, 19] as const
const diskBytesMin = gibibyte
const filesMin = 4096

export async function examine({ environment, workingDirectory }: CliContext): Promise<readonly Finding[]> {
  let config: Config
  try {
    config = loadConfig(environment, workingDirectory)
  } catch (error) {
    return [bad("configuration", sentence(error), "correct the configuration, then run umpire doctor again")]
  }
  const isRunning = Boolean(await connectOperator(operatorAddress(config.data_dir)).catch(() => null))
  return [
    node(),
    {
      name: "configuration",
      state: "ok",
      found: environment["UMPIRE_CONFIG"] ?? "defaults (no UMPIRE_CONFIG)",
    },
    machine(),
    clock(),
    openFiles(),
    await attempt("disk", "check UMPIRE_DATA_DIR", async () => await disk(config)),
    pages(),
    await attempt(
      "engine library",
      "run npm install again; the engine library is a package of its own for each platform",
      library,
    ),
    await attempt("gpu", "run npm install again", gpu),
    await attempt(
      "models",
      "correct models in the configuration, or the file it names",
      async () => await models(config),
    ),
    directory(config),
    await store(config, isRunning),
    await attempt(
      "e-mail",
      "check email.smtp_* and that the mail server accepts connections from here",
      async () => await email(config),
    ),
    await port(config, isRunning),
  ]
}

async function attempt(
  name: string,
  advice: string,
  look: () => Finding | Promise<Finding>,
): Promise<Finding> {
  try {
    return await look()
  } catch (error) {
    return bad(name, sentence(error), advice)
  }
}

function node(): Finding {
  const [major = 0, minor = 0] = process.versions.node.split(".").map(Number)
  const found = `Node ${process.versions.node}, Umpire ${version}`
  const isNew = major > nodeMin[0] || (major === nodeMin[0] && minor >= nodeMin[1])
  return isNew ? ok("node", found) : bad("node", found, `use Node ${nodeMin.join(".")} or newer`)
}

/** Each connection and each stream is an open file. */
function openFiles(): Finding {
  const limits = existsSync("/proc/self/limits") ? readFileSync("/proc/self/limits", "utf8") : ""
  const most = Number(/^Max open files\s+(\d+)/m.exec(limits)?.[1] ?? Infinity)
  if (most >= filesMin) return ok("open files", Number.isFinite(most) ? `at most ${most}` : "no known limit")
  return note("open files", `at most ${most}`, `raise it for many connections: ulimit -n ${filesMin * 4}`)
}

async function disk({ data_dir }: Config): Promise<Finding> {
  const place = existsSync(data_dir) ? data_dir : dirname(data_dir)
  const { bavail, bsize } = await statfs(place)
  const free = bavail * bsize
  const found = `${(free / gibibyte).toFixed(1)} GiB free for ${data_dir}`
  return free >= diskBytesMin
    ? ok("disk", found)
    : note("disk", found, "free some, or choose another UMPIRE_DATA_DIR")
}

function pages(): Finding {
  const built = existsSync(join(import.meta.dirname, "..", "..", "console", "dist", "index.html"))
  return built
    ? ok("console", "built")
    : bad("console", "not built", "run npm start in the clone, or install the package again")
}

/** Certificates, sessions and expiry need the time of day. */
function clock(): Finding {
  const now = new Date()
  return now.getUTCFullYear() >= 2026
    ? ok("clock", now.toISOString())
    : bad("clock", now.toISOString(), "set the machine's clock")
}

function machine(): Finding {
  const found = `${availableParallelism()} cores, ${(freemem() / gibibyte).toFixed(1)} of ${(totalmem() / gibibyte).toFixed(1)} GiB memory free, ${process.platform} ${process.arch}`
  return freemem() < gibibyte
    ? {
        name: "machine",
        state: "note",
        found,
        advice:
          "the server needs about 1 GiB; lower engine.cache_memory_mib and engine.kv_memory_mib if memory is short",
      }
    : ok("machine", found)
}

async function library(): Promise<Finding> {
  const { llamaCppRelease, gpu: used } = await openLibrary()
  return ok("engine library", `llama.cpp ${llamaCppRelease.release}, ${used === false ? "cpu" : used}`)
}

/** The CPU build comes with the installation; a GPU build is large, so it is fetched only when asked for. */
async function gpu(): Promise<Finding> {
  const nvidia = existsSync("/proc/driver/nvidia/version") || existsSync("/dev/nvidia0")
  if (process.platform === "darwin") return ok("gpu", "Metal, in the standard build")
  if (!nvidia) return ok("gpu", "none found; the CPU is used")
  const unused = [
    ...(hasCudaProvider() ? [] : ["ONNX models"]),
    ...((await openLibrary()).gpu === "cuda" ? [] : ["GGUF models"]),
  ]
  if (unused.length === 0) return ok("gpu", "NVIDIA, used by the CUDA builds")
  return {
    name: "gpu",
    state: "note",
    found: `NVIDIA found, not used for ${unused.join(" and ")}`,
    advice: "umpire gpu install brings the CUDA builds, or says what they lack",
  }
}

async function models(config: Config): Promise<Finding> {
  const catalog = await loadCatalog(config.models, catalogOptions(config))
  return ok(
    "models",
    catalog
      .list()
      .map(
        ({ sku, quantization, contextTokensMax }) => `${sku} (${quantization}, context ${contextTokensMax})`,
      )
      .join(", "),
  )
}

function directory(config: Config): Finding {
  const existing = existsSync(config.data_dir)
  const place = existing ? config.data_dir : dirname(config.data_dir)
  try {
    accessSync(place, constants.W_OK)
    return ok("data directory", existing ? config.data_dir : `${config.data_dir} (will be made)`)
  } catch {
    return bad(
      "data directory",
      `${config.data_dir} cannot be written`,
      "choose another with UMPIRE_DATA_DIR",
    )
  }
}

async function store(config: Config, isRunning: boolean): Promise<Finding> {
  if (isRunning) return ok("store", "open in the running server")
  if (config.database.url === undefined && !existsSync(config.data_dir))
    return ok("store", "embedded, made at the first start")
  return await attempt(
    "store",
    "check UMPIRE_DATABASE_URL and that the database accepts connections",
    async () => {
      const database = await openDatabase(config)
      try {
        const pending = (await migrationStatus(database)).filter(({ appliedAt }) => appliedAt === null).length
        return ok(
          "store",
          `${config.database.url === undefined ? "embedded" : "PostgreSQL"}, ${pending === 0 ? "up to date" : `${plural(pending, "migration")} to run at the next start`}`,
        )
      } finally {
        await database.close()
      }
    },
  )
}

/** Connects, upgrades to TLS and signs in, as an alert would; nothing is sent. */
async function email(config: Config): Promise<Finding> {
  const mail = mailSenderOf(config, () => "")
  if (!mail) return ok("e-mail", "not configured; alerts go to webhooks only")
  await mail.check()
  const { smtp_host, smtp_port, smtp_tls } = config.email
  return ok("e-mail", `${smtp_host}:${smtp_port} accepts (${smtp_tls})`)
}

async function port({ server }: Config, isRunning: boolean): Promise<Finding> {
  const place = `${server.host}:${server.port}`
  try {
    await checkPort(server.host, server.port)
    return ok("port", `${place} is free`)
  } catch (error) {
    if (isRunning) return ok("port", `${place} is in use; a server of this data directory runs`)
    const advice = "another server runs there; choose a port with UMPIRE_PORT if it is not Umpire"
    return { name: "port", state: "note", found: sentence(error), advice }
  }
}

const ok = (name: string, found: string): Finding => ({ name, state: "ok", found })
const note = (name: string, found: string, advice: string): Finding => ({
  name,
  state: "note",
  found,
  advice,
})
const bad = (name: string, found: string, advice: string): Finding => ({ name, state: "bad", found, advice })
const sentence = (error: unknown): string => (error instanceof Error ? error.message : "it failed")
