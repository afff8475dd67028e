/** `umpire fleet`: a page of the whole installation for the operator at this machine, until it is stopped. */
import type { OperatorClient } from "../contract/client.ts"
import type { OpenOperator } from "./actions.ts"
import { type Command, UsageError, flagOption, text, valueOption } from "./command.ts"
import { openBrowser } from "./welcome.ts"
import { stopSignal } from "./run-until-stopped.ts"

interface FleetPage {
  readonly link: string
  close(): Promise<void>
}

type OpenPage = (port: number, client: OperatorClient) => Promise<FleetPage>

const portMax = 65_535

export const fleet = (open: OpenOperator, openPage: OpenPage): Command => ({
  usage: ["umpire fleet [--port 0] [--no-open]"],
  options: {
    port: valueOption("port on 127.0.0.1; picks a free one by itself", "p"),
    "no-open": flagOption("print the link only"),
  },
  run: async (context) => {
    const port = Number(text(context, "port") ?? "0")
    if (!Number.isInteger(port) || port < 0 || port > portMax) throw new UsageError("--port is 0 to 65535")
    const { client } = await open(context)
    // Says at once that no server runs.
    await client.getStatus()
    const stopped = stopSignal()
    const page = await openPage(port, client)
    context.stdout.write(`The fleet page, for one browser, until Ctrl-C:\n${page.link}\n`)
    if (context.values["no-open"] !== true) openBrowser(page.link, context.environment)
    await stopped
    await page.close()
    return 0
  },
})
