import { afterAll, beforeAll, expect, test } from "vitest"
import { type CelPool, CelStopped, createCelPool } from "./cel-pool.ts"
import type { PolicyText } from "./policy-text.ts"

let pool: CelPool
beforeAll(async () => {
  pool = createCelPool()
  // Both workers are up before anything is measured against a deadline.
  await Promise.all([run("a", { rules: ["true"] }), run("b", { rules: ["true"] })])
})
afterAll(() => pool.close())

const policy = (given: Partial<PolicyText>): PolicyText => ({
  condition: null,
  transformations: {},
  rules: ["true"],
  ...given,
})
const run = async (owner: string, given: Partial<PolicyText>, claims: Record<string, unknown> = {}) =>
  await pool.run(owner, policy(given), claims)
const flaws = async (given: Partial<PolicyText>) => await pool.check("a", policy(given))

/** 500 cubed steps; each list is small, the nesting is within the cap. */
const many = `[${Array.from({ length: 500 }, () => 1).join(",")}]`
const bomb = `${many}.all(a, ${many}.all(b, ${many}.all(c, a + b + c > 0)))`

test("condition, transformations and rules run in this order, and the first rule that is true wins", async () => {
  const given = {
    condition: "assertion.sub.startsWith('repo:')",
    transformations: { repo: "assertion.sub.split(':')[1]", branch: "assertion.ref" },
    rules: ["attribute.repo == 'other'", "attribute.branch == 'main'", "true"],
  }
  expect(await run("a", given, { sub: "repo:acme", ref: "main" })).toEqual({
    matched: 1,
    attributes: { repo: "acme", branch: "main" },
  })
  expect(await run("a", given, { sub: "repo:acme", ref: "dev" })).toMatchObject({ matched: 2 })
  expect(await run("a", given, { sub: "user:acme", ref: "main" })).toEqual({
    refusedBy: "attribute_condition",
    reason: "the condition is false",
    attributes: null,
  })
})

test.each([
  ["a missing claim", { condition: "assertion.nope == 'x'" }, "attribute_condition", /field not found: nope/],
  [
    "a condition that is not a boolean",
    { condition: "assertion.sub" },
    "attribute_condition",
    /neither true/,
  ],
  ["a division by zero", { transformations: { x: "1 / 0" } }, "attribute_transformations", /x cannot be/],
  ["a value JSON lacks", { transformations: { x: "[b'a'][0]" } }, "attribute_transformations", /JSON/],
  ["a rule that fails", { rules: ["assertion.n[0]", "true"] }, "authorization_rules", /rule 0 cannot/],
])("an evaluation error refuses the exchange: %s", async (_, given, step, reason) => {
  const outcome = await run("a", given, { sub: "x", n: 5 })
  expect(outcome).toMatchObject({ refusedBy: step, reason: expect.stringMatching(reason) })
})

test.each([
  ["'a/b/c/d'.split('/', 2)", ["a", "b/c/d"]],
  ["'a/b/c/d'.split('/', 1)", ["a/b/c/d"]],
  ["'a/b'.split('/', 3)", ["a", "b"]],
  ["'a/b'.split('/', 0)", []],
  ["'a/b'.split('/', -1)", ["a", "b"]],
  ["'hello hello'.replace('he', 'we', -1)", "wello wello"],
  ["'hello hello'.replace('he', 'we', 1)", "wello hello"],
  ["'hello hello'.replace('he', '$&', 2)", "$&llo $&llo"],
  ["'hello'.replace('he', 'we', 0)", "hello"],
])("%s is as the extension defines it", async (text, x) => {
  expect(await run("a", { transformations: { x: text } })).toEqual({ matched: 0, attributes: { x } })
})

test("a claim named like a property that every object has is absent unless it was sent", async () => {
  for (const name of ["constructor", "toString", "__proto__", "hasOwnProperty"])
    expect(await run("a", { rules: [`has(assertion.${name})`, "true"] }, { sub: "x" })).toMatchObject({
      matched: 1,
    })
})

test.each([
  ["assertion.sub ==", 1, 15, /expecting/],
  ["assertion.sub == 'x' &&\n  nope", 2, 3, /no variable nope/],
  ["assertion.sub.starts('x')", 1, 14, /no function starts/],
  ["1 + 'a' == 2", 1, 3, /cannot be applied to \(int, string\)/],
  ["attribute.missing == 1", 1, 10, /attribute has no field missing/],
  ["'text'", 1, 1, /answers a string, not true or false/],
  ["'a' && true", 1, 1, /neither true nor false/],
  ["Message{a: 1} == 1", 1, 1, /no message type Message/],
  ["[[[[1]]]].all(a, a.all(b, b.all(c, c.all(d, d > 0))))", 1, 37, /3 loops inside one another/],
])("a rule that cannot be right is refused with its place: %s", async (rule, line, column, message) => {
  expect(await flaws({ transformations: { known: "assertion.sub" }, rules: [rule, "true"] })).toEqual([
    { path: "authorization_rules.0.condition", message: expect.stringMatching(message), line, column },
  ])
})

test("rules that are right pass the check", async () => {
  const rules = [
    "assertion.sub in ['a', 'b'] && attribute.x.matches('^[a-z]+$')",
    "has(assertion.groups) && assertion.groups.exists(g, g == 'ops' || g.startsWith('team-'))",
    "assertion.kubernetes['namespace'].lowerAscii() == 'prod' ? true : assertion.admin",
    "size(assertion.list) > 1 && timestamp(assertion.at) > timestamp('2026-01-01T00:00:00Z')",
    "strings.quote(assertion.sub) == '\"a\"' && type(assertion.sub) == string",
  ]
  expect(await flaws({ transformations: { x: "assertion.sub" }, rules: [...rules, "true"] })).toEqual([])
})

test("attributes are not visible in the condition and the transformations", async () => {
  const found = await flaws({ condition: "attribute.x == 1", transformations: { x: "1", y: "attribute.x" } })
  expect(found.map(({ path }) => path)).toEqual(["attribute_condition", "attribute_transformations.y"])
})

test.each([
  ["250 levels are checked", "!".repeat(1) + "(".repeat(20) + "true" + ")".repeat(20), 0],
  [
    "an expression of 16 KiB that nests too deep is refused",
    Array.from({ length: 3276 }, () => "a").join(".b||"),
    1,
  ],
  ["3000 operators and signs are checked", `1 in [${Array.from({ length: 2999 }, () => "1").join(",")}]`, 0],
  ["one more is refused", `1 in [${Array.from({ length: 3000 }, () => "1").join(",")}]`, 1],
  ["signs in a text do not count", `'${"+".repeat(16_000)}' != ''`, 0],
  ["16 KiB of parentheses are refused", "(".repeat(8192) + ")".repeat(8192), 1],
  ["a field 249 deep is checked", `assertion${".a".repeat(248)} == 1`, 0],
  ["a field 250 deep is refused", `assertion${".a".repeat(250)} == 1`, 1],
  [
    "brackets beside one another are not deep",
    `[${Array.from({ length: 700 }, () => "(1)").join(",")}] != []`,
    0,
  ],
])("%s", async (_, rule, count) => {
  expect(await flaws({ rules: [rule, "true"] })).toHaveLength(count)
})

test("a comprehension bomb is stopped while the exchanges of others go on", async () => {
  const attacks: unknown[] = []
  const state = { over: false }
  const attack = async (): Promise<void> => {
    while (!state.over)
      attacks.push(await run("attacker", { rules: [bomb, "true"] }).catch((error: unknown) => error))
  }
  const attackers = Promise.all(Array.from({ length: 3 }, attack))
  await run("other", {})
  // Had each of them to wait for an attack to end, none would begin and end between two of those ends.
  for (let amid = 0, turn = 0; amid < 10; turn++) {
    const before = attacks.length
    expect(await run(`other-${turn % 7}`, {})).toMatchObject({ matched: 0 })
    if (attacks.length === before) amid++
  }
  state.over = true
  await attackers
  for (const answer of attacks) expect(answer).toBeInstanceOf(CelStopped)
  expect(await run("attacker", { rules: ["true"] })).toMatchObject({ matched: 0 })
})

test("a policy that builds more than the memory of a worker is stopped", async () => {
  const doubled = Array.from({ length: 3 }, () => "x").join("+")
  const grow = `${many}.map(a, ${many}.map(b, assertion.text + assertion.text)).size() > 0`
  await expect(run("a", { rules: [grow, doubled, "true"] }, { text: "x".repeat(10_000) })).rejects.toThrow(
    CelStopped,
  )
  expect(await run("a", { rules: ["true"] })).toMatchObject({ matched: 0 })
})
