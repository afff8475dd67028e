import { expect, test } from "vitest"
import { type ModelSituation, modelStatus } from "./models.ts"

const fine: ModelSituation = { enabled: true, public: true, access: null, billing: null }

const scenarios: readonly (readonly [string, Partial<ModelSituation>, string])[] = [
  ["a public model", {}, "active"],
  ["a public model whose request was refused", { access: "deny" }, "active"],
  ["a public model whose request is open", { access: "pending" }, "active"],
  ["a granted model", { public: false, access: "grant" }, "active"],
  ["a model never asked for", { public: false }, "access_required"],
  ["a refused model", { public: false, access: "deny" }, "access_required"],
  ["a model asked for", { public: false, access: "pending" }, "access_pending"],
  ["a model that is off", { enabled: false }, "disabled"],
  ["off wins over access", { enabled: false, public: false, access: "pending" }, "disabled"],
  ["off wins over money", { enabled: false, billing: "spend_limit_exceeded" }, "disabled"],
  ["access wins over money", { public: false, billing: "billing_setup_failed" }, "access_required"],
  [
    "an open request wins over money",
    { public: false, access: "pending", billing: "prepaid_credits_required" },
    "access_pending",
  ],
  [
    "a grant does not pay",
    { public: false, access: "grant", billing: "payment_method_required" },
    "payment_method_required",
  ],
  ["no provider", { billing: "billing_setup_failed" }, "billing_setup_failed"],
  ["no payment method", { billing: "payment_method_required" }, "payment_method_required"],
  ["no credit", { billing: "prepaid_credits_required" }, "prepaid_credits_required"],
  ["the cutoff", { billing: "spend_limit_exceeded" }, "spend_limit_exceeded"],
]

test.each(scenarios)("%s", (_, situation, expected) => {
  expect(modelStatus({ ...fine, ...situation })).toBe(expected)
})
