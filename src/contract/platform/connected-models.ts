/** Models at other servers, connected by address and key: for owners of the operator's organization. */
import { z } from "zod"
import { endpointGroup } from "../endpoint-group.ts"
import { namedObject } from "../endpoint.ts"
import { decisionMethods, remoteDialects } from "../model-check.ts"
import { changeFields } from "./field-schemas.ts"

/** Letters, digits and `. _ - / :`, as models are named elsewhere. */
export const skuForm = /^[\p{L}\p{N}][\p{L}\p{N}._/:-]{0,127}$/u
/** A name for a model, which requests use. */
export const Sku = z.string().trim().regex(skuForm, "up to 128 letters, digits and . _ - / : are needed")

const usdForm = /^\d{1,8}(?:\.\d{1,10})?$/
export const Usd = z.string().regex(usdForm, "USD are needed, such as 0.40")

const addressCharactersMax = 2048

/** A model at a server of its own. */
export const ConnectedModel = z.strictObject({
  sku: Sku.describe("The name that requests use."),
  dialect: z.enum(remoteDialects).describe("How the server is spoken to."),
  url: z
    .url({ protocol: /^https?$/ })
    .max(addressCharactersMax)
    .refine((url) => !/^\w+:\/\/[^/]*@/.test(url), "an address without a name and a password is needed"),
  model: z.string().min(1).max(256).describe("What the server calls it."),
  context_tokens_max: z.int().min(1).max(100_000_000).default(128_000),
  price_m_input_tokens_usd: Usd,
  price_m_input_cache_read_tokens_usd: Usd,
  price_m_output_tokens_usd: Usd,
})
export type ConnectedModel = z.infer<typeof ConnectedModel>

export const GivenConnectedModel = ConnectedModel.extend({ key: z.string().min(1).max(4_096).optional() })

export const CheckState = z.object({
  state: z.enum(["estimate", "needless", "running", "done", "failed"]),
  done: z.int(),
  rows: z.int().describe("How many are asked; once it is done, how many are answered."),
  cost_usd: z.string().describe("The most that it can cost; what it cost once it is done."),
  method: z.enum(decisionMethods),
  accuracy: z.number().nullable(),
  left_out: z
    .array(z.object({ row: z.int().describe("From 1 on."), reason: z.string() }))
    .describe("Rows that the server answers not at all; the others calibrate the model."),
  problem: z.string().nullable().describe("Why it failed, and what was spent."),
})
export type CheckState = z.infer<typeof CheckState>

/** How a model at another server decides. */
export const decidingFields = {
  decides: z
    .enum(decisionMethods)
    .nullable()
    .describe("How a model at another server is asked for decisions, once that is known."),
  calibrated: z.boolean().nullable().describe("Whether its decisions are calibrated, where they need that."),
}

export const ConnectedModelView = namedObject("ConnectedModel", {
  id: z.string(),
  ...ConnectedModel.shape,
  has_key: z.boolean(),
  ...decidingFields,
  accuracy: z.number().nullable().describe("Of its check, where it had one."),
  ...changeFields,
})
export type ConnectedModelView = z.infer<typeof ConnectedModelView>

/** Sessions only: what is given here reaches private addresses, as the operator's own hand does. */
const operators = { principals: ["session"], permission: "api-admin", owner: "sessions" } as const
const models = endpointGroup("/v1/organizations/{org_id}/connected_models", {
  area: "Models",
  read: operators,
  write: operators,
})
const model = models.at("/{connected_model_id}")
const only = "for owners of the operator's organization, the one of the first start"

export const connectedModelTable = {
  listConnectedModels: models.get({
    summary: `List the models that are connected by address and key; ${only}`,
    output: z.array(ConnectedModelView),
    errors: ["permission_denied"],
  }),
  createConnectedModel: models.post({
    summary: `Connect a model by address and key; it is asked at once, and the key is kept encrypted and never shown. For every organization; ${only}`,
    body: GivenConnectedModel,
    output: ConnectedModelView,
    errors: ["conflict", "invalid_request", "permission_denied"],
  }),
  deleteConnectedModel: model.remove({
    summary: `Disconnect a model, and forget its key; ${only}`,
    errors: ["permission_denied"],
  }),
  checkConnectedModel: model.at("/check").post({
    summary: `Calibrate a chat model on 200 rows; without a limit of the cost only say what it can cost, or how far the check is; ${only}`,
    body: z.strictObject({ cost_max_usd: Usd.optional() }),
    output: CheckState,
    errors: ["invalid_request", "permission_denied"],
  }),
}
