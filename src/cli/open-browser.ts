/** Opens an address in the person's browser, where there is a person and a browser. */
import { spawn } from "node:child_process"

type Environment = Readonly<Record<string, string | undefined>>

/** The program that opens an address, with its arguments; undefined where none can be expected to work. */
export function browserCommand(platform: NodeJS.Platform, environment: Environment): string[] | undefined {
  // A browser on the far side of a connection is not the person's.
  if (environment["SSH_CONNECTION"]) return undefined
  if (environment["BROWSER"]) return [environment["BROWSER"]]
  if (platform === "darwin") return ["open"]
  // The empty argument is the title of the window, which start would else take the address for.
  if (platform === "win32") return ["cmd", "/c", "start", ""]
  return environment["DISPLAY"] || environment["WAYLAND_DISPLAY"] ? ["xdg-open"] : undefined
}

/** The address is printed as well, so a browser that does not start is no failure. */
export function openBrowser(url: string, environment: Environment): void {
  const [command, ...args] = browserCommand(process.platform, environment) ?? []
  if (command === undefined) return
  spawn(command, [...args, url], { stdio: "ignore", detached: true })
    .on("error", () => undefined)
    .unref()
}
