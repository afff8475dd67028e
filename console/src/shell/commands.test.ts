import { expect, test } from "vitest"
import { type Command, findCommands } from "./commands.ts"

const command = (name: string, more: Partial<Command> = {}): Command => ({
  id: name,
  name,
  kind: "Page",
  icon: "key",
  run: () => undefined,
  ...more,
})
const commands = [
  command("API keys", { also: "secret rotate" }),
  command("Create key", { kind: "Action" }),
  command("key of Ada", { kind: "API key", detail: "key_01", quiet: true }),
  command("Ada Lovelace", { kind: "Person", detail: "ada@example.com", quiet: true }),
]
const found = (text: string): string[] => findCommands(commands, text).map(({ name }) => name)

test.each([
  ["rotate", ["API keys"]],
  ["create key", ["Create key"]],
  ["key create", ["Create key"]],
  ["ADA@", ["Ada Lovelace"]],
  ["key_01", ["key of Ada"]],
  ["nothing", []],
])("%j finds %j", (text, names) => {
  expect(found(text)).toEqual(names)
})

test("names that begin with the text come first, then names that hold it, then other words", () => {
  expect(found("key")).toEqual(["key of Ada", "API keys", "Create key"])
  expect(found("ada")).toEqual(["Ada Lovelace", "key of Ada"])
})

test("without a text, pages and actions are offered, not every key and person", () => {
  expect(found("  ")).toEqual(["API keys", "Create key"])
})
