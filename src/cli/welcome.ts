/** What a person needs to begin: the key, the link to the console, and a request to paste; and the browser that opens the link. */
import { spawn } from "node:child_process"

/** In the data directory, where no terminal is attached; `umpire keys first` makes another key. */
export const welcomeFile = "first-start.txt"

interface Welcome {
  readonly url: string
  readonly modelSku: string
  readonly keyValue: string
  /** The whole address that signs in once; null where there is none to show. */
  readonly consoleUrl: string | null
}

export function drawWelcome({ url, modelSku, keyValue, consoleUrl }: Welcome): string {
  const body = {
    model: modelSku,
    input: "The parcel arrived two weeks late and the box was crushed. I want my money back.",
    questions: [
      { type: "predicate", name: "refund", instructions: "Does the customer ask for a refund?" },
      {
        type: "choice",
        name: "topic",
        instructions: "What is the complaint about?",
        choices: [{ value: "delivery" }, { value: "billing" }, { value: "password" }],
      },
    ],
  }
  return [
    "Your API key (shown only now; umpire keys first makes another):",
    "",
    `  ${keyValue}`,
    "",
    ...(consoleUrl === null ? [] : ["The console (this link signs you in once):", "", `  ${consoleUrl}`, ""]),
    "Try it:",
    "",
    `curl -s ${url}/v1/decisions \\`,
    `  -H 'Authorization: Bearer ${keyValue}' \\`,
    "  -H 'Content-Type: application/json' \\",
    `  -d '${JSON.stringify(body)}'`,
    "",
    "",
  ].join("\n")
}

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
