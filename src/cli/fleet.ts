/** `umpire fleet`: a page of the whole installation for the operator at this machine, until it is stopped. */
import { type CliContext, type Command, UsageError, text } from "./command.ts"
import { openBrowser } from "./open-browser.ts"
import type { Operate } from "./operator.ts"
import { stopSignal } from "./run-until-stopped.ts"

interface FleetPage {
  readonly link: string
  close(): Promise<void>
}

type OpenPage = (port: number, operate: Operate) => Promise<FleetPage>

const portMax = 65_535

export const fleet = (operator: (context: CliContext) => Operate, open: OpenPage): Command => ({
  usage: ["umpire fleet [--port 0] [--no-open]"],
  options: { port: { type: "string", short: "p" }, "no-open": { type: "boolean" } },
  optionHelp: {
    port: "port on 127.0.0.1; picks a free one by itself",
    "no-open": "print the link only",
  },
  run: async (context) => {
    const port = Number(text(context, "port") ?? "0")
    if (!Number.isInteger(port) || port < 0 || port > portMax) throw new UsageError("--port is 0 to 65535")
    const operate = operator(context)
    // Says at once that no server runs.
    await operate("status", null)
    const stopped = stopSignal()
    const page = await open(port, operate)
    context.stdout.write(`The fleet page, for one browser, until Ctrl-C:\n${page.link}\n`)
    if (context.values["no-open"] !== true) openBrowser(page.link, context.environment)
    await stopped
    await page.close()
    return 0
  },
})
