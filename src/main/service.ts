/** The handlers of what the service says of itself. */
import { ConstantJson, type Handlers } from "../contract/endpoint.ts"
import { openapi } from "../contract/openapi.ts"
import { questionSetSchema } from "../contract/question-sets/sets.ts"
import { type Table, table } from "../contract/table.ts"
import { etagOf } from "../server/pages.ts"
import { version } from "./package-files.ts"
import type { Readiness } from "./readiness.ts"

type ServiceHandlers = Pick<
  Handlers<Table>,
  "getHealth" | "getReadiness" | "getOpenapi" | "getQuestionSetSchema"
>

export function serviceHandlers(readiness: Readiness): ServiceHandlers {
  // Made when they are first asked for: a start would take half a second longer.
  let document: ConstantJson | undefined
  let schema: ConstantJson | undefined
  const facts = { title: "Umpire", version, description: "Typed decisions and inference, self-hosted." }
  return {
    getHealth: async () => ({ status: "ok" }),
    getReadiness: async () => await readiness.check(),
    getOpenapi: async () => (document ??= constantJson(openapi(table, facts))),
    getQuestionSetSchema: async () => (schema ??= constantJson(questionSetSchema())),
  }
}

function constantJson(value: object): ConstantJson {
  const bytes = Buffer.from(JSON.stringify(value))
  return new ConstantJson(bytes, etagOf(bytes))
}
