/** What a scripted provider answers to any client's tests: the tool that it is offered, called, or a value of the schema that it is given. */
import { hasResult } from "./agents-scene.ts"
import type { UpstreamAnswer, UpstreamRequest } from "./upstream.ts"

interface Schema {
  readonly type?: string
  readonly properties?: Readonly<Record<string, Schema>>
}

export function answerBySchema(request: UpstreamRequest): UpstreamAnswer {
  const said = String(request.messages.at(-1)?.content)
  const offered = request.tools?.filter(({ function: { name } }) => isChosen(name, request.tool_choice))
  const [tool] = offered ?? []
  if (tool && !hasResult(request)) {
    const { name, parameters } = tool.function
    return { calls: [{ name, arguments: JSON.stringify(valueOf(parameters as Schema, said)) }] }
  }
  const format = request.response_format as { type: string; json_schema?: { schema: Schema } } | undefined
  if (format?.json_schema) return { text: JSON.stringify(valueOf(format.json_schema.schema, said)) }
  return {
    text:
      format?.type === "json_object" ? '{"setup":"Why?","punchline":"Because."}' : "Good day from far away.",
  }
}

const isChosen = (name: string, choice: unknown): boolean =>
  typeof choice !== "object" || choice === null || !JSON.stringify(choice).includes('"name"')
    ? true
    : JSON.stringify(choice).includes(`"name":"${name}"`)

/** The integer is the one that LangChain's tests name; a text repeats what was said. */
function valueOf({ type, properties = {} }: Schema, said: string): unknown {
  if (type === "integer") return 3
  if (type === "object")
    return Object.fromEntries(
      Object.entries(properties).map(([name, schema]) => [name, valueOf(schema, said)]),
    )
  return said
}
