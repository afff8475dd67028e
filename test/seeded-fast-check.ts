/**
 * What tests get as `fast-check`: the same cases in every run, so that none fails by chance. UMPIRE_TEST_SEED draws others,
 * and `npm run test:long` runs every test that draws with a new one, which it prints.
 */
import fc from "../node_modules/fast-check/lib/fast-check.js"

fc.configureGlobal({ seed: Number(process.env["UMPIRE_TEST_SEED"] ?? 20_262) })

export default fc
