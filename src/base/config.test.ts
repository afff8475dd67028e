import { mkdtempSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { expect, test } from "vitest"
import { ConfigError, configKeys, loadConfig, unknownVariables } from "./config.ts"

function withFile(text: string): { UMPIRE_CONFIG: string } {
  const path = join(mkdtempSync(join(tmpdir(), "umpire-config-")), "umpire.yaml")
  writeFileSync(path, text)
  return { UMPIRE_CONFIG: path }
}

test("nothing configured gives the embedded defaults", () => {
  const config = loadConfig({}, "/srv")
  expect(config.server).toMatchObject({ host: "127.0.0.1", port: 8484 })
  expect(config.data_dir).toBe("/srv/.umpire")
  expect(config.database.url).toBeUndefined()
})

test("the environment wins over the file", () => {
  const environment = {
    ...withFile("server:\n  port: 1000\n  host: 0.0.0.0\n"),
    UMPIRE_PORT: "2000",
    UMPIRE_LOG_LEVEL: "debug",
  }
  const config = loadConfig(environment, "/srv")
  expect(config.server).toMatchObject({ host: "0.0.0.0", port: 2000 })
  expect(config.log.level).toBe("debug")
})

test.each([
  ["an unknown key", "server:\n  prot: 1\n", "server.prot"],
  ["an unknown section", "sever: {}\n", "sever"],
  ["a wrong type", "server:\n  port: many\n", "server.port"],
  ["a port past the last", "server:\n  port: 65536\n", "server.port"],
  ["a secret in the file", "database:\n  url: postgres://u:p@h/d\n", "database.url"],
  ["a list at the top", "- a\n", "mapping"],
  ["not YAML", "a: [\n", "Cannot read"],
])("%s is refused with the key named", (_name, text, named) => {
  expect(() => loadConfig(withFile(text), "/srv")).toThrow(ConfigError)
  expect(() => loadConfig(withFile(text), "/srv")).toThrow(named)
})

test("a bad variable is refused with the key named", () => {
  expect(() => loadConfig({ UMPIRE_PORT: "http" }, "/srv")).toThrow("server.port")
})

test("a mistake in the file is refused though the environment sets the same key; a right value is replaced", () => {
  const environment = { ...withFile("server:\n  port: abc\n"), UMPIRE_PORT: "0" }
  expect(() => loadConfig(environment, "/srv")).toThrow("server.port")
  expect(loadConfig({ ...withFile("server:\n  port: 1\n"), UMPIRE_PORT: "0" }, "/srv").server).toMatchObject({
    port: 0,
  })
})

test("secrets come by reference to the environment", () => {
  const environment = { ...withFile("database:\n  url: { env: PG }\n"), PG: "postgres://somewhere/umpire" }
  expect(loadConfig(environment, "/srv").database.url).toBe("postgres://somewhere/umpire")
  expect(() => loadConfig(withFile("database:\n  url: { env: PG }\n"), "/srv")).toThrow("PG")
})

test("variables that set nothing are named", () => {
  const environment = {
    ...withFile("sso:\n  client_secret: { env: UMPIRE_SSO_SECRET_OF_OURS }\n"),
    UMPIRE_PORT: "8484",
    UMPIRE_CLICKHOUSE_URL: "http://127.0.0.1:8123",
    UMPIRE_API_KEY: "ump_x",
    UMPIRE_SSO_SECRET_OF_OURS: "s",
    UMPIRE_EMPTY: "",
    UMPIRE_PROT: "8485",
    UMPIRE_ANALYTICS_CHDB: "true",
    HOME: "/root",
  }
  expect(unknownVariables(environment, "/srv")).toEqual(["UMPIRE_ANALYTICS_CHDB", "UMPIRE_PROT"])
})

test("every key says what it means", () => {
  for (const { key, meaning } of configKeys()) expect(meaning, key).not.toBe("")
})
