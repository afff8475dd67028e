/** The clients that `umpire connect` configures: which file is theirs, and what it says afterwards. */
import { isObject, parsedJson } from "../base/json.ts"

export interface Connection {
  /** Ends without a slash. */
  readonly url: string
  readonly model: string
  /** The variable that holds the key; the key itself is written into no file of a client that can read a variable. */
  readonly keyVariable: string
}

interface ConnectedClient {
  readonly title: string
  /** Below the home directory, or the working directory where `isLocal`. */
  readonly file: string
  readonly isLocal?: boolean
  /** What the file says afterwards, from what it says now; undefined where there is none. */
  write(before: string | undefined, connection: Connection): string
  /** Where an earlier version wrote, and what that file says without it. */
  readonly formerly?: { readonly file: string; remove(before: string): string }
  /** What the person does next. */
  readonly next: string
}

export const connectedClients: Readonly<Record<string, ConnectedClient>> = {
  codex: {
    title: "Codex CLI",
    // `--profile NAME` reads NAME.config.toml over config.toml, and refuses a table [profiles.NAME] in that.
    file: ".codex/umpire.config.toml",
    write: (before = "", connection) => withTomlBlock(before, connection),
    formerly: { file: ".codex/config.toml", remove: (before) => cutOut(before).join("").trimStart() },
    next: "codex --profile umpire",
  },
  claude: {
    title: "Claude Code",
    file: ".claude/settings.json",
    write: (before, { url, model }) =>
      withJson(before, ["env"], {
        ANTHROPIC_BASE_URL: url,
        ANTHROPIC_MODEL: model,
        ANTHROPIC_SMALL_FAST_MODEL: model,
      }),
    next: "export ANTHROPIC_AUTH_TOKEN=$UMPIRE_API_KEY, then claude",
  },
  "openai-env": {
    title: "OpenAI's libraries, and what reads their variables",
    file: ".env",
    isLocal: true,
    write: (before, { url, keyVariable }) =>
      withVariables(before, { OPENAI_BASE_URL: `${url}/v1`, OPENAI_API_KEY: `\${${keyVariable}}` }),
    next: "set -a; . ./.env; set +a, then start the program",
  },
  continue: {
    title: "Continue",
    file: ".continue/.env",
    write: (before, { url, keyVariable }) =>
      withVariables(before, { UMPIRE_BASE_URL: `${url}/v1`, UMPIRE_KEY: `\${${keyVariable}}` }),
    next: "name provider openai with apiBase ${{ secrets.UMPIRE_BASE_URL }} in config.yaml",
  },
}

const begin = "# >>> umpire connect"
const end = "# <<< umpire connect"

/** Between two marks, so that a second run replaces what the first wrote and leaves everything else. */
function withTomlBlock(before: string, { url, model, keyVariable }: Connection): string {
  const provider = "model_providers.umpire"
  const block = [
    begin,
    'model_provider = "umpire"',
    `model = ${JSON.stringify(model)}`,
    `${provider}.name = "Umpire"`,
    `${provider}.base_url = ${JSON.stringify(`${url}/v1`)}`,
    `${provider}.env_key = ${JSON.stringify(keyVariable)}`,
    `${provider}.wire_api = "responses"`,
    end,
  ].join("\n")
  // Tables come last in TOML: keys that stand before them all keep their meaning.
  const [head, rest] = cutOut(before)
  return `${head}${block}\n${rest}`
}

/** What stands before and after the block; all of it after, where there is none. */
function cutOut(before: string): [head: string, rest: string] {
  const start = before.indexOf(begin)
  const stop = before.indexOf(end)
  if (start < 0 || stop < start) return ["", before]
  return [before.slice(0, start), before.slice(stop + end.length).replace(/^\n/, "")]
}

/** Sets fields of an object inside the document and keeps everything else. */
function withJson(
  before: string | undefined,
  path: readonly string[],
  fields: Readonly<Record<string, string>>,
): string {
  const document = before === undefined || before.trim() === "" ? {} : readObject(before)
  let place = document
  for (const name of path) {
    const inner = place[name]
    place[name] = typeof inner === "object" && inner !== null ? inner : {}
    // An object, by the line above.
    place = place[name] as Record<string, unknown>
  }
  Object.assign(place, fields)
  return `${JSON.stringify(document, null, 2)}\n`
}

/** The parser's own message would quote the text, which may hold secrets. */
function readObject(text: string): Record<string, unknown> {
  const document = parsedJson(text)
  if (!isObject(document)) throw new Error("it is not a JSON object")
  return { ...document }
}

/** Replaces variables of the file where they stand, and adds the others at the end. */
function withVariables(before = "", variables: Readonly<Record<string, string>>): string {
  const lines = before.trimEnd() === "" ? [] : before.trimEnd().split("\n")
  for (const [name, value] of Object.entries(variables)) {
    const line = `${name}=${value}`
    const at = lines.findIndex((one) => one.startsWith(`${name}=`))
    if (at < 0) lines.push(line)
    else lines[at] = line
  }
  return `${lines.join("\n")}\n`
}
