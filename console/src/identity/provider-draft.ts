/** A provider as a form holds it, and as the API takes it. */
import type { Permission } from "../../../src/contract/access.ts"
import type { NewProvider, WorkloadIdentityProvider } from "../../../src/contract/identity.ts"
import { t } from "../i18n/translate.ts"

export interface ProviderDraft {
  readonly name: string
  readonly active: boolean
  readonly type: "oidc" | "x509"
  readonly issuer: string
  readonly audiences: string
  readonly jwks: string
  readonly anchors: string
  readonly intermediates: string
  readonly condition: string
  readonly transformations: readonly {
    readonly id: string
    readonly name: string
    readonly expression: string
  }[]
  /** The last one is for everyone else. */
  readonly rules: readonly {
    readonly id: string
    readonly condition: string
    readonly permissions: readonly Permission[]
  }[]
}

let lastRow = 0
/** Tells rows of the form apart while they are edited. */
export const rowId = (): string => `row${++lastRow}`

/** Nothing is granted until the form says so. */
export function emptyDraft(): ProviderDraft {
  return {
    name: "",
    active: true,
    type: "oidc",
    issuer: "",
    audiences: "",
    jwks: "",
    anchors: "",
    intermediates: "",
    condition: "",
    transformations: [],
    rules: [{ id: rowId(), condition: "true", permissions: [] }],
  }
}

export function draftOf({ config, ...provider }: WorkloadIdentityProvider): ProviderDraft {
  const empty = emptyDraft()
  return {
    ...empty,
    name: provider.name,
    active: provider.active,
    type: config.type,
    ...(config.type === "oidc"
      ? {
          issuer: config.issuer_uri,
          audiences: config.allowed_audiences.join(", "),
          jwks: config.jwks === null || config.jwks === undefined ? "" : JSON.stringify(config.jwks, null, 2),
        }
      : { anchors: config.trust_anchors.join("\n"), intermediates: config.intermediate_cas.join("\n") }),
    condition: provider.attribute_condition ?? "",
    transformations: Object.entries(provider.attribute_transformations).map(([name, expression]) => ({
      id: rowId(),
      name,
      expression,
    })),
    rules: provider.authorization_rules.map((rule) => ({ id: rowId(), ...rule })),
  }
}

export function toProvider(draft: ProviderDraft): NewProvider {
  return {
    name: draft.name,
    active: draft.active,
    config: draft.type === "oidc" ? oidcConfig(draft) : x509Config(draft),
    attribute_condition: draft.condition.trim() || null,
    attribute_transformations: Object.fromEntries(
      draft.transformations.map(({ name, expression }) => [name.trim(), expression]),
    ),
    authorization_rules: draft.rules.map(({ condition, permissions }) => ({
      condition,
      permissions: [...permissions],
    })),
  }
}

function oidcConfig({ issuer, audiences, jwks }: ProviderDraft): NewProvider["config"] {
  return {
    type: "oidc",
    issuer_uri: issuer.trim(),
    allowed_audiences: audiences
      .split(",")
      .map((audience) => audience.trim())
      .filter(Boolean),
    jwks: jwks.trim() === "" ? null : parseKeySet(jwks),
  }
}

function x509Config({ anchors, intermediates }: ProviderDraft): NewProvider["config"] {
  return { type: "x509", trust_anchors: splitPem(anchors), intermediate_cas: splitPem(intermediates) }
}

function parseKeySet(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new Error(t("The key set is not JSON."))
  }
}

/** Certificates as they come in one file. */
export function splitPem(text: string): string[] {
  return (
    text.match(/-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g) ??
    (text.trim() ? [text.trim()] : [])
  )
}
