/** A policy as it was written, and the expressions in it. Apart from what compiles them, which only the threads load. */

export interface PolicyText {
  readonly condition: string | null
  readonly transformations: Readonly<Record<string, string>>
  readonly rules: readonly string[]
}

/** One expression of a policy, and what it may use and answer. */
export interface ExpressionCheck {
  readonly path: string
  readonly text: string
  readonly purpose: "condition" | "attribute" | "rule"
  /** The attributes that a rule can read. */
  readonly attributes: readonly string[]
}

export function expressionsOf(policy: PolicyText): ExpressionCheck[] {
  const attributes = Object.keys(policy.transformations)
  const check = (path: string, text: string, purpose: ExpressionCheck["purpose"]): ExpressionCheck => ({
    path,
    text,
    purpose,
    attributes,
  })
  return [
    ...(policy.condition === null ? [] : [check("attribute_condition", policy.condition, "condition")]),
    ...Object.entries(policy.transformations).map(([name, text]) =>
      check(`attribute_transformations.${name}`, text, "attribute"),
    ),
    ...policy.rules.map((text, index) => check(`authorization_rules.${index}.condition`, text, "rule")),
  ]
}
