/** `umpire service`: runs the server as a service of systemd. */
import { execFileSync } from "node:child_process"
import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { type CliContext, type Command, UsageError, flagOption, text, valueOption } from "./command.ts"
import { systemdUnit } from "./systemd-unit.ts"
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
