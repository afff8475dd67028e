/** The chat template of a model's file, less the system turn that some add by themselves. */

/** As the templates of SmolLM2 and its kin write it, before the first message. */
const DEFAULT_SYSTEM_TURN =
  /\{%-?\s*if loop\.first and messages\[0\]\['role'\] != 'system'\s*-?%\}\{\{.*?\}\}\{%-?\s*endif\s*-?%\}/s

/** What neither the caller nor the evidence says is not said to the model: SmolLM2 of 135M answers in French after its own system turn. */
export const withoutDefaultSystem = (template: string): string => template.replace(DEFAULT_SYSTEM_TURN, "")
