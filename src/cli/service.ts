/** `umpire service`: runs the server as a service of systemd. */
import { execFileSync } from "node:child_process"
import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { type CliContext, type Command, UsageError, flagOption, text, valueOption } from "./command.ts"
import { welcomeFile } from "./welcome.ts"

const unitName = "umpire.service"
const serviceUser = "umpire"

export const service: Command = {
  usage: [
    "umpire service install [--user]",
    "umpire service print [--user]",
    "umpire service uninstall [--user]",
  ],
  options: {
    user: flagOption("a service of your own user instead of the system; needs no root"),
    "unit-dir": valueOption("where the unit is written; defaults to systemd's folder"),
    "no-start": flagOption("write the unit only"),
  },
  run: async (context) => {
    if (process.platform !== "linux")
      throw new UsageError("services are for systemd on Linux; here, run umpire serve")
    switch (context.positionals[0]) {
      case "print":
        context.stdout.write(unitOf(context))
        return 0
      case "install":
        return install(context)
      case "uninstall":
        return uninstall(context)
      default:
        throw new UsageError("say install, print or uninstall")
    }
  },
}

interface Place {
  readonly unit: string
  readonly environmentFile: string
  readonly dataDirectory: string
  readonly isUser: boolean
}

function placeOf(context: CliContext): Place {
  const isUser = context.values["user"] === true
  const home = context.environment["HOME"] ?? "/root"
  const settings = context.environment["XDG_CONFIG_HOME"] ?? join(home, ".config")
  const folder =
    text(context, "unit-dir") ?? (isUser ? join(settings, "systemd", "user") : "/etc/systemd/system")
  return {
    unit: join(folder, unitName),
    environmentFile: isUser ? join(settings, "umpire", "environment") : "/etc/umpire/environment",
    dataDirectory: isUser ? join(home, ".local", "share", "umpire") : "/var/lib/umpire",
    isUser,
  }
}

function unitOf(context: CliContext): string {
  const { environmentFile, dataDirectory, isUser } = placeOf(context)
  const command = [process.execPath, process.argv[1] ?? "umpire", "serve"]
  return systemdUnit({ command, environmentFile, dataDirectory, user: isUser ? null : serviceUser })
}

function install(context: CliContext): number {
  const place = placeOf(context)
  const home = context.environment["HOME"]
  // The unit of the system sees no home directories.
  const hidden = [process.execPath, process.argv[1] ?? ""].find((path) => isAtHome(path, home))
  if (!place.isUser && hidden !== undefined)
    throw new UsageError(
      `${hidden} lies in a home directory, which a service of the system does not see: use --user`,
    )
  mkdirSync(dirname(place.unit), { recursive: true })
  writeFileSync(place.unit, unitOf(context))
  context.stdout.write(`${place.unit} is written. Settings (UMPIRE_*) go into ${place.environmentFile}.\n`)
  if (context.values["no-start"] === true) return 0
  if (!place.isUser && !hasUser())
    execFileSync("useradd", ["--system", "--no-create-home", "--shell", "/usr/sbin/nologin", serviceUser])
  control(place, "daemon-reload")
  control(place, "enable", "--now", unitName)
  context.stdout.write(
    `Umpire runs. Its first key is in ${join(place.dataDirectory, welcomeFile)}; another: ${keysFirst(place)}.\n`,
  )
  return 0
}

/** As who owns the data directory, which is the only one that may. */
const keysFirst = ({ isUser, dataDirectory }: Place): string =>
  `${isUser ? "" : `sudo -u ${serviceUser} `}env UMPIRE_DATA_DIR=${dataDirectory} umpire keys first`

const isAtHome = (path: string, home: string | undefined): boolean =>
  /^\/(?:home|root|run\/user)\//.test(path) || (home !== undefined && path.startsWith(`${home}/`))

function uninstall(context: CliContext): number {
  const place = placeOf(context)
  if (!existsSync(place.unit)) throw new UsageError(`there is no ${place.unit}`)
  if (context.values["no-start"] !== true) control(place, "disable", "--now", unitName)
  rmSync(place.unit)
  if (context.values["no-start"] !== true) control(place, "daemon-reload")
  context.stdout.write(`${place.unit} is removed. The data stay in ${place.dataDirectory}.\n`)
  return 0
}

function control({ isUser }: Place, ...args: string[]): void {
  execFileSync("systemctl", [...(isUser ? ["--user"] : []), ...args], {
    stdio: ["ignore", "inherit", "inherit"],
  })
}

function hasUser(): boolean {
  try {
    execFileSync("id", ["-u", serviceUser], { stdio: "ignore" })
    return true
  } catch {
    return false
  }
}

interface UnitSettings {
  /** The program and its arguments. */
  readonly command: readonly string[]
  readonly dataDirectory: string
  /** Holds UMPIRE_* settings; may be absent. */
  readonly environmentFile: string
  /** A unit of the system runs as a user of its own; one of a user already does. */
  readonly user: string | null
}

/** Restarted when it fails, and kept from everything that it does not need. */
export function systemdUnit({ command, dataDirectory, environmentFile, user }: UnitSettings): string {
  return [
    "[Unit]",
    "Description=Umpire: typed decisions and inference",
    ...(user === null
      ? []
      : ["After=network-online.target postgresql.service", "Wants=network-online.target"]),
    // It waits for its database by itself; what ends at once again and again is given up, and shown as failed.
    "StartLimitIntervalSec=300",
    "StartLimitBurst=10",
    "",
    "[Service]",
    `ExecStart=${command.map(quoted).join(" ")}`,
    `Environment=${escaped(`UMPIRE_DATA_DIR=${dataDirectory}`)}`,
    `EnvironmentFile=-${environmentFile.replaceAll("%", "%%")}`,
    ...(user === null
      ? []
      : [`User=${user}`, `Group=${user}`, "StateDirectory=umpire", "StateDirectoryMode=0700"]),
    "Restart=on-failure",
    "RestartSec=5",
    // SIGTERM drains within 30 s; only the server is told, which ends its engines itself.
    "KillMode=mixed",
    "TimeoutStopSec=35",
    "LimitNOFILE=65536",
    "UMask=0077",
    ...(user === null ? userHardening : [...userHardening, ...systemHardening]),
    "",
    "[Install]",
    `WantedBy=${user === null ? "default.target" : "multi-user.target"}`,
    "",
  ].join("\n")
}

/** JavaScript is compiled at run time, so memory may be written and then executed: no MemoryDenyWriteExecute. */
const userHardening = [
  "NoNewPrivileges=yes",
  "RestrictSUIDSGID=yes",
  "LockPersonality=yes",
  "RestrictRealtime=yes",
]

const systemHardening = [
  "ProtectSystem=strict",
  "ProtectHome=yes",
  "PrivateTmp=yes",
  "PrivateMounts=yes",
  "ProtectHostname=yes",
  "ProtectClock=yes",
  "ProtectKernelTunables=yes",
  "ProtectKernelModules=yes",
  "ProtectKernelLogs=yes",
  "ProtectControlGroups=yes",
  "ProtectProc=invisible",
  "RestrictNamespaces=yes",
  "RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX",
  "CapabilityBoundingSet=",
  "AmbientCapabilities=",
  "RemoveIPC=yes",
  "SystemCallArchitectures=native",
  "SystemCallFilter=@system-service",
  "SystemCallFilter=~@privileged",
  // The analytics process lowers its own priority.
  "SystemCallFilter=setpriority sched_setaffinity sched_setscheduler",
]

/** systemd splits at spaces and expands percent signs, and in commands also variables. */
const quoted = (word: string): string => escaped(word.replaceAll("$", "$$$$"))

const escaped = (word: string): string =>
  `"${word.replaceAll("%", "%%").replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`
