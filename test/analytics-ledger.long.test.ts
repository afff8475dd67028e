/** Events and ledger under kill -9; the full count. */
import { ledgerSuite } from "./analytics-ledger.ts"

ledgerSuite(50)
