/** The entry of the fleet page, which `umpire fleet` serves to operators; it is no part of the console that tenants open. */
import "../../../src/contract/zod-without-eval.ts"
import { loadLanguage } from "../i18n/language.ts"
import "../styles.css"

await loadLanguage()
await import("./app.tsx")
