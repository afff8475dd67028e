/** The entry of the console: first its language, then all that has texts. */
import "../../src/contract/zod-without-eval.ts"
import { loadLanguage } from "./i18n/language.ts"
import "./styles.css"

await loadLanguage()
await import("./app.tsx")
