/** `umpire workers`: takes a worker out of service for maintenance, and puts it back, at every gateway of the installation. */
import { type CliContext, type Command, UsageError, show } from "./command.ts"
import type { Operate } from "./operator.ts"

export const workers = (operator: (context: CliContext) => Operate): Command => ({
  usage: [
    "umpire workers drain WORKER [--json]    it finishes what it has and gets no new requests",
    "umpire workers undrain WORKER [--json]  it gets requests again",
  ],
  options: { json: { type: "boolean" } },
  optionHelp: { json: "print JSON" },
  run: async (context) => {
    const [verb, worker] = context.positionals
    if ((verb !== "drain" && verb !== "undrain") || worker === undefined)
      throw new UsageError("say drain or undrain, and the worker's id as umpire status lists it")
    const result = await operator(context)(`workers.${verb}`, { worker })
    return show(context, result, () =>
      verb === "drain"
        ? `${worker} gets no new requests; other gateways see it within 5 seconds\n`
        : `${worker} gets requests again; other gateways see it within 5 seconds\n`,
    )
  },
})
