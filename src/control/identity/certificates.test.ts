import { expect, test } from "vitest"
import { readAlternativeNames } from "./certificates.ts"

test.each([
  ["", { dns: [], uri: [], email: [], ip: [] }],
  ["DNS:a.example", { dns: ["a.example"], uri: [], email: [], ip: [] }],
  [
    "DNS:a, URI:spiffe://td/x, email:a@b, IP Address:10.0.0.1, DNS:b",
    { dns: ["a", "b"], uri: ["spiffe://td/x"], email: ["a@b"], ip: ["10.0.0.1"] },
  ],
  // A name that tries to look like two.
  [
    'DNS:"evil.example, DNS:good.example"',
    { dns: ["evil.example, DNS:good.example"], uri: [], email: [], ip: [] },
  ],
  ['URI:"spiffe://td/\\u0000x"', { dns: [], uri: ["spiffe://td/\u0000x"], email: [], ip: [] }],
  ["othername:<unsupported>, DNS:a", { dns: ["a"], uri: [], email: [], ip: [] }],
])("the names of %j are read", (text, names) => {
  expect(readAlternativeNames(text)).toEqual(names)
})

test.each(['DNS:a"b', "DNS", ", DNS:a", 'DNS:"open'])("%j cannot be read without doubt", (text) => {
  expect(readAlternativeNames(text)).toBeNull()
})
