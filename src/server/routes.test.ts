import { expect, test } from "vitest"
import type { Endpoint } from "../contract/endpoint.ts"
import { table } from "../contract/table.ts"
import { Routes } from "./handle-request.ts"

const routes = new Routes<string>()
routes.add({ method: "GET", path: "/v1/things" }, "list")
routes.add({ method: "GET", path: "/v1/things/{id}" }, "one")
routes.add({ method: "GET", path: "/v1/things/newest" }, "newest")
routes.add({ method: "GET", path: "/v1/things/{id}/parts/{part_id}" }, "part")
routes.add({ method: "GET", path: "/v1/things/{id}.pdf" }, "document")
routes.add({ method: "DELETE", path: "/v1/things/{id}" }, "delete")

test.each([
  ["GET", "/v1/things", "list", {}],
  ["GET", "/v1/things/a", "one", { id: "a" }],
  ["GET", "/v1/things/newest", "newest", {}],
  ["GET", "/v1/things/newest/parts/1", "part", { id: "newest", part_id: "1" }],
  ["GET", "/v1/things/a.pdf", "document", { id: "a" }],
  ["GET", "/v1/things/a.b.pdf", "document", { id: "a.b" }],
  ["GET", "/v1/things/a.html", "one", { id: "a.html" }],
  ["GET", "/v1/things/.pdf", "one", { id: ".pdf" }],
  ["GET", "/v1/things/a.pdf/parts/1", "part", { id: "a.pdf", part_id: "1" }],
  ["DELETE", "/v1/things/newest", "delete", { id: "newest" }],
  ["GET", "/v1/%74hings/a%2Fb%20c", "one", { id: "a/b c" }],
  ["GET", `/v1/things/${"a".repeat(512)}`, "one", { id: "a".repeat(512) }],
  ["GET", "/v1/things/__proto__", "one", { id: "__proto__" }],
])("%s %s is found", (method, path, target, params) => {
  expect(routes.find(method, path)).toEqual({ target, params })
})

test.each([
  ["POST", "/v1/things"],
  ["GET", "/v1/things/"],
  ["GET", "/v1//things"],
  ["GET", "/v1/things/a/parts"],
  ["GET", "/v1/things/a/parts/"],
  ["GET", "/v1/things/%zz"],
  ["GET", `/v1/things/${"a".repeat(513)}`],
  ["GET", "v1/things"],
  ["GET", "*"],
  ["GET", "/V1/things"],
])("%s %s is not", (method, path) => {
  expect(routes.find(method, path)).toBeNull()
})

test("two names for one place are a mistake of the table", () => {
  expect(() => routes.add({ method: "GET", path: "/v1/things/{other}" }, "x")).toThrow("names of one place")
})

test("every endpoint of the table is found on its own path, with its own parameters", () => {
  const mounted = new Routes<string>()
  const endpoints = Object.entries<Endpoint>(table)
  for (const [name, endpoint] of endpoints) mounted.add(endpoint, name)
  const found = endpoints.map(([, { method, path }]) =>
    mounted.find(
      method,
      path.replaceAll(/\{(\w+)\}/g, (_, param: string) => `my_${param}`),
    ),
  )
  expect(found).toEqual(
    endpoints.map(([target, { path }]) => ({
      target,
      params: Object.fromEntries(
        [...path.matchAll(/\{(\w+)\}/g)].map(([, param = ""]) => [param, `my_${param}`]),
      ),
    })),
  )
})
